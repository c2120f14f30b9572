import { beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeBackend } from '../../test/fake-backend';
import { STATS, conversation, message, summary } from '../../test/fixtures';
import { ChatState } from './store.svelte';

describe('the branches', () => {
  let backend: FakeBackend;
  let chat: ChatState;
  let messages = [message({ id: 'q', role: 'user', text: 'Q', versions: 2 })];

  beforeEach(async () => {
    backend = new FakeBackend();
    backend.on('conversation_get', () => conversation('c', null, messages));
    chat = new ChatState(backend);
    await chat.open('c');
  });

  it('are chosen by the version of a message', async () => {
    const asked: unknown[] = [];
    backend.on('message_choose', (args) => {
      asked.push(args);
      messages = [message({ id: 'q2', role: 'user', text: 'Q, otherwise', versions: 2 })];
      return summary('c');
    });
    await chat.chooseBranch('q', 2);
    expect(asked).toEqual([{ message: 'q', version: 2 }]);
    expect(chat.shown[0]?.text).toBe('Q, otherwise');
  });

  it('go and come back', async () => {
    backend.on('message_delete', () => {
      messages = [];
      return summary('c');
    });
    await chat.remove('q');
    expect(chat.shown).toEqual([]);
    backend.on('message_restore', () => {
      messages = [message({ id: 'q', role: 'user', text: 'Q' })];
      return summary('c');
    });
    await chat.restore('q');
    expect(chat.shown.length).toBe(1);
  });

  it('keep what an answer has while it goes on', async () => {
    const answer = message({ id: 'a', text: 'Once upon', state: 'streaming' });
    backend.on('message_continue', () => ({
      turn: 't',
      conversation: 'c',
      user_message: 'q',
      assistant_message: 'a',
    }));
    backend.on('conversation_get', () => conversation('c', 't', [answer]));
    await chat.continueAnswer('a');
    expect(chat.shown[0]?.text).toBe('Once upon');
    backend.emit('t', [{ type: 'text', text: 'Once upon', ids: [1] }]);
    backend.emit('t', [{ type: 'text', text: ' a time', ids: [2] }]);
    expect(chat.shown[0]?.text).toBe('Once upon a time');
    backend.on('conversation_get', () =>
      conversation('c', null, [
        { ...answer, text: 'Once upon a time', state: 'complete', stats: STATS },
      ]),
    );
    backend.emit('t', [{ type: 'done', stats: STATS }]);
    backend.end('t');
    await vi.waitFor(() => expect(chat.answering).toBe(false));
  });
});
