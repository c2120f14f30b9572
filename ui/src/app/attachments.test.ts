// @vitest-environment jsdom
import { afterEach, describe, expect, it } from 'vitest';
import { BackendError } from '../backend/backend';
import { AttachmentsState } from '../features/attachments/store.svelte';
import { MessageQueue } from '../features/chat/message-queue.svelte';
import { ChatState } from '../features/chat/store.svelte';
import { FakeBackend } from '../test/fake-backend';
import { attachment, STATS } from '../test/fixtures';

const settled = () => new Promise((done) => setTimeout(done, 0));

afterEach(() => sessionStorage.clear());

describe('files of messages', () => {
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
    const queue = new MessageQueue();
    queue.add('c', 'later', [attachment('a')]);
    const [item] = queue.of('c');
    const attached = new AttachmentsState(backend);
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
