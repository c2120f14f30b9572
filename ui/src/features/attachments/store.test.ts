// @vitest-environment jsdom
import { afterEach, describe, expect, it } from 'vitest';
import { AttachmentsState } from './store.svelte';
import { filterResources } from './filter-resources';
import { BackendError } from '../../backend/backend';
import { FakeBackend } from '../../test/fake-backend';
import { attachment } from '../../test/fixtures';

const settled = () => new Promise((done) => setTimeout(done, 0));

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
    const found = (wanted: string) => filterResources(list, wanted).map((it) => it.name);
    expect([found(''), found('NOTE do'), found('fox')]).toEqual([
      ['today', 'table'],
      ['today'],
      [],
    ]);
    const backend = new FakeBackend();
    backend.on('tool_resource_attach', ({ id, uri }) =>
      attachment(`${id} ${uri}`, { name: 'today.md' }),
    );
    const attached = new AttachmentsState(backend);
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
    const attached = new AttachmentsState(backend);
    await attached.addFile('c', new File(['a'], 'here.md'));
    await attached.addFile(null, new File(['b'], 'gone.md'));
    await attached.verify();
    expect(attached.isReady('c') && attached.isReady(null)).toBe(true);
    backend.on('attachment_text', ({ id }) => {
      if (id === 'gone.md')
        throw new BackendError({ code: 'session.not_found', message: '', remedy: '' });
      return { attachment: attachment(id), text: 'a', start: 0, total: 1 };
    });
    await attached.verify();
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
    const attached = new AttachmentsState(backend);
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
    const attached = new AttachmentsState(backend);
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
    const chosen = (attached: AttachmentsState) =>
      attached.of('c').map((it) => [it.name, it.state]);
    const before = new AttachmentsState(backend);
    const first = before.addFile('c', new File(['x'], 'a.txt'));
    await Promise.all([first, before.addFile('c', new File(['x'], 'b.txt'))]);
    const again = new AttachmentsState(backend);
    expect(chosen(again)).toEqual([
      ['a.txt', 'ready'],
      ['b.txt', 'ready'],
    ]);
    expect(again.of(null)).toEqual([]);
    again.remove('c', again.of('c')[0]?.key ?? 0);
    expect(chosen(new AttachmentsState(backend))).toEqual([['b.txt', 'ready']]);
    again.forget('c');
    expect(chosen(new AttachmentsState(backend))).toEqual([]);
  });
});

describe('images of a draft', () => {
  const image = { width: 2, height: 1, thumbnail: 'data:image/png;base64,' };

  it('open as images, and leave a draft together', () => {
    const state = new AttachmentsState(new FakeBackend());
    const [picture, notes] = [attachment('p', { kind: 'image', image }), attachment('n', {})];
    state.putBack(null, [picture, notes]);
    state.view(picture);
    expect([state.viewedImage?.id, state.viewed]).toEqual(['p', null]);
    expect([state.canSend(null, ' '), state.canSend('other', ' ')]).toEqual([true, false]);
    state.view(notes);
    expect(state.viewed?.id).toBe('n');
    state.removeImages(null);
    expect(state.files(null).map((it) => it.id)).toEqual(['n']);
  });
});
