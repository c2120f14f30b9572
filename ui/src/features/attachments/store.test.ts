// @vitest-environment jsdom
import { afterEach, describe, expect, it } from 'vitest';
import { Attached } from './store.svelte';
import { facts } from './file-summary';
import { marked } from './highlight-range';
import { matching } from './filter-resources';
import { insert, isExport, isExportPath, LONG_TEXT, pasted } from './paste';
import { Queue } from '../chat/message-queue.svelte';
import { BackendError } from '../../backend/backend';
import type { Attachment } from '../../backend/bindings';
import { ChatState } from '../chat/store.svelte';
import { FakeBackend } from '../../test/fake-backend';
import { STATS } from '../../test/fixtures';

const settled = () => new Promise((done) => setTimeout(done, 0));

const attachment = (id: string, over: Partial<Attachment> = {}): Attachment => ({
  id,
  name: `${id}.txt`,
  kind: 'text',
  bytes: 3,
  findings: [],
  ...over,
});

afterEach(() => sessionStorage.clear());

describe('what servers of tools offer', () => {
  const resource = (uri: string, description = '') => ({
    uri,
    name: uri.slice(7),
    description,
    kind: null,
    bytes: null,
  });

  it('is found by words, and goes with the message as a file', async () => {
    const list = [resource('note://today', 'What to do'), resource('note://table')];
    const found = (wanted: string) => matching(list, wanted).map((it) => it.name);
    expect([found(''), found('NOTE do'), found('fox')]).toEqual([
      ['today', 'table'],
      ['today'],
      [],
    ]);
    const backend = new FakeBackend();
    backend.on('tool_resource_attach', ({ id, uri }) =>
      attachment(`${id} ${uri}`, { name: 'today.md' }),
    );
    const attached = new Attached(backend);
    const added = attached.addResource('c', { id: 's', uri: 'note://today', name: "Today's note" });
    expect(attached.of('c').map((it) => [it.name, it.state])).toEqual([
      ["Today's note", 'reading'],
    ]);
    await added;
    expect(attached.of('c').map((it) => [it.name, it.state])).toEqual([['today.md', 'ready']]);
    expect(attached.files('c')[0]?.id).toBe('s note://today');
  });
});

describe('files of a draft', () => {
  it('are told by their names once the application has them no more', async () => {
    const backend = new FakeBackend();
    backend.on('attachment_add', ({ name }) => attachment(name, { name }));
    const attached = new Attached(backend);
    await attached.addFile('c', new File(['a'], 'here.md'));
    await attached.addFile(null, new File(['b'], 'gone.md'));
    await attached.check();
    expect(attached.isReady('c') && attached.isReady(null)).toBe(true);
    backend.on('attachment_text', ({ id }) => {
      if (id === 'gone.md')
        throw new BackendError({ code: 'session.not_found', message: '', remedy: '' });
      return { attachment: attachment(id), text: 'a', start: 0, total: 1 };
    });
    await attached.check();
    expect(attached.of('c').map((it) => [it.name, it.state])).toEqual([['here.md', 'ready']]);
    expect(attached.of(null).map((it) => [it.name, it.state, it.error?.code])).toEqual([
      ['gone.md', 'failed', 'attachment.gone'],
    ]);
    expect(attached.files(null)).toEqual([]);
    attached.forget(null);
    attached.forget('c');
  });

  it('are read by the application, and removed there when they are removed here', async () => {
    const backend = new FakeBackend();
    const sent: string[] = [];
    const removed: string[] = [];
    backend.on('attachment_add', ({ name, base64 }) => {
      sent.push(`${name} ${base64}`);
      return attachment('one', { name });
    });
    backend.on('attachment_remove', ({ id }) => {
      removed.push(id);
      return null;
    });
    const attached = new Attached(backend);
    const added = attached.addFile('c', new File(['hi!'], 'notes.md'));
    expect(attached.of('c').map((it) => [it.name, it.bytes, it.state])).toEqual([
      ['notes.md', 3, 'reading'],
    ]);
    expect(attached.isReady('c')).toBe(false);
    const key = await added;
    expect(sent).toEqual(['notes.md aGkh']);
    expect(attached.isReady('c')).toBe(true);
    expect(attached.files('c').map((it) => it.id)).toEqual(['one']);
    expect(attached.of(null)).toEqual([]);
    attached.remove('c', key);
    await settled();
    expect(attached.of('c')).toEqual([]);
    expect(removed).toEqual(['one']);
  });

  it('that can’t be used stay with their reason until they are removed', async () => {
    const backend = new FakeBackend();
    const why = { code: 'attachment.refused', message: 'No text.', remedy: 'Save it as PDF.' };
    backend.on('attachment_add_path', () => {
      throw new BackendError(why);
    });
    const attached = new Attached(backend);
    const key = await attached.addPath(null, '/somewhere/a picture.png');
    expect(attached.of(null)[0]).toMatchObject({
      name: 'a picture.png',
      state: 'failed',
      error: why,
    });
    expect(attached.isReady(null)).toBe(false);
    attached.remove(null, key);
    expect(attached.isReady(null)).toBe(true);
    expect(backend.called).toEqual(['attachment_add_path']);
  });

  it('are there again when the page is loaded anew, until they went or were removed', async () => {
    const backend = new FakeBackend();
    backend.on('attachment_add', ({ name }) => attachment(name, { name }));
    backend.on('attachment_remove', () => null);
    const chosen = (attached: Attached) => attached.of('c').map((it) => [it.name, it.state]);
    const before = new Attached(backend);
    const first = before.addFile('c', new File(['x'], 'a.txt'));
    await Promise.all([first, before.addFile('c', new File(['x'], 'b.txt'))]);
    const again = new Attached(backend);
    expect(chosen(again)).toEqual([
      ['a.txt', 'ready'],
      ['b.txt', 'ready'],
    ]);
    expect(again.of(null)).toEqual([]);
    again.remove('c', again.of('c')[0]?.key ?? 0);
    expect(chosen(new Attached(backend))).toEqual([['b.txt', 'ready']]);
    again.forget('c');
    expect(chosen(new Attached(backend))).toEqual([]);
  });

  it('go with the message, and come back with one that waits', async () => {
    const backend = new FakeBackend();
    const asked: unknown[] = [];
    backend.on('send', (args) => {
      asked.push(args.attachments);
      throw new BackendError({ code: 'x', message: 'no', remedy: '' });
    });
    const chat = new ChatState(backend);
    expect(await chat.send('Why?', 'm', { files: [attachment('a'), attachment('b')] })).toBe(false);
    await chat.send('Why?', 'm');
    expect(asked).toEqual([['a', 'b'], undefined]);
    const queue = new Queue();
    queue.add('c', 'later', [attachment('a')]);
    const [item] = queue.of('c');
    const attached = new Attached(backend);
    attached.putBack('c', item?.files ?? []);
    expect(attached.files('c').map((it) => it.id)).toEqual(['a']);
    queue.forget('c');
  });

  it('of a temporary chat are told each time', async () => {
    const backend = new FakeBackend();
    const asked: (string[] | undefined)[][] = [];
    backend.on('temporary_send', ({ messages }) => {
      asked.push(messages.map((it) => it.attachments));
      return { turn: `t${asked.length}` };
    });
    const answer = async (turn: string) => {
      backend.emit(turn, [
        { type: 'text', text: 'So.', ids: [1] },
        { type: 'done', stats: STATS },
      ]);
      backend.end(turn);
      await settled();
    };
    const chat = new ChatState(backend);
    chat.startTemporary();
    await chat.send('Why?', 'm', { files: [attachment('a')] });
    await answer('t1');
    await chat.regenerate(chat.shown[1]?.id ?? '');
    await answer('t2');
    await chat.edit(chat.shown[0]?.id ?? '', 'How?');
    expect(asked.map((it) => it[0])).toEqual([['a'], ['a'], ['a']]);
  });
});

describe('what is said of a file', () => {
  it.each([
    [{ kind: 'pdf', bytes: 1200 }, 'PDF · 1.2 kB'],
    [{ kind: 'text', tokens: 1 }, 'Text · 3 bytes · 1 token'],
    [{ kind: 'csv', tokens: 1234, whole: true }, 'CSV · 3 bytes · 1,234 tokens'],
    [{ kind: 'code', tokens: 9, whole: false }, 'Code · 3 bytes · 9 tokens · searched'],
    [{ kind: 'markdown', tokens: 9, is_about: true }, 'Markdown · 3 bytes · about 9 tokens'],
  ] as const)('%o: %s', (over, expected) => {
    expect(facts(attachment('a', over), 'searched')).toBe(expected);
  });
});

describe('what is pasted', () => {
  const data = (text: string, ...files: File[]) =>
    ({ getData: () => text, files }) as unknown as DataTransfer;

  it('is files, a text that is too long, or neither', () => {
    const file = new File(['x'], 'x.txt');
    expect(pasted(data('', file))).toEqual({ type: 'files', files: [file] });
    expect(pasted(data('cells', file))).toEqual({ type: 'plain' });
    expect(pasted(data('a'.repeat(LONG_TEXT)))).toEqual({ type: 'plain' });
    expect(pasted(data('a'.repeat(LONG_TEXT + 1))).type).toBe('text');
    expect(pasted(null)).toEqual({ type: 'plain' });
  });

  it('is put where it would have been', () => {
    expect(insert('ab', 'X', 1, 1)).toBe('aXb');
    expect(insert('abc', 'X', 1, 2)).toBe('aXc');
    expect(insert('ab', 'X', Infinity, Infinity)).toBe('abX');
  });

  it('is told from exports of conversations', async () => {
    const json = (text: string) => isExport(new File([text], 'a.json'));
    expect(await json('{"format": "inglenook.conversations"}')).toBe(true);
    expect(await json('[{"title": "x", "mapping": {}}]')).toBe(true);
    expect(await json('{"name": "package"}')).toBe(false);
    expect(await isExport(new File(['PK'], 'export.zip'))).toBe(true);
    expect(await isExport(new File(['"mapping":'], 'a.txt'))).toBe(false);
    expect(isExportPath('/home/x/conversations.json')).toBe(true);
    expect(isExportPath('/home/x/package.json')).toBe(false);
  });
});

describe('a passage in a text', () => {
  it('is found by its bytes', () => {
    const text = 'Über den Fluß\nund weiter';
    const bytes = (part: string) => new TextEncoder().encode(part).length;
    const start = bytes('Über den ');
    const passage = { start, end: start + bytes('Fluß') };
    expect(marked(text, 0, passage)).toEqual({
      before: 'Über den ',
      mark: 'Fluß',
      after: '\nund weiter',
    });
    const moved = { start: passage.start + 100, end: passage.end + 100 };
    expect(marked(text, 100, moved).mark).toBe('Fluß');
    expect(marked(text, 500, passage)).toEqual({ before: text, mark: '', after: '' });
    expect(marked(text, 0, null).before).toBe(text);
  });
});
