import { beforeEach, describe, expect, it } from 'vitest';
import type { AppEvent, ToolCall, ToolRunState } from '../../backend/bindings';
import { ChatState } from './store.svelte';
import { FakeBackend } from '../../test/fake-backend';
import { STATS, conversation, message } from '../../test/fixtures';

const call = (state: ToolRunState, result = ''): ToolCall => ({
  id: 'c1',
  name: 'echo',
  arguments: '{"text":"x"}',
  run: {
    server: 's',
    server_name: 'lab',
    tool: 'echo',
    state,
    result,
    cut: 0,
    duration_ms: 3,
    findings: [],
    at_limit: false,
  },
});

const told = (calls: ToolCall[], over = false): AppEvent => ({
  type: 'tool_calls',
  conversation: 'c',
  message: 'a',
  calls,
  over,
  turn: null,
});

describe('calls in a chat', () => {
  const user = message({ id: 'u', role: 'user', text: 'Say it' });
  const answer = (calls: ToolCall[]) => message({ id: 'a', stats: STATS, tool_calls: calls });
  let backend: FakeBackend;
  let chat: ChatState;

  beforeEach(async () => {
    backend = new FakeBackend();
    backend.on('conversation_get', () => conversation('c', null, [user, answer([call('asking')])]));
    backend.on('conversation_prefetch', () => null);
    backend.on('tool_stop', () => null);
    chat = new ChatState(backend);
    await chat.open('c');
  });

  const state = () => chat.shown.at(-1)?.tool_calls[0]?.run?.state;

  it('ask, run and end as the application says', async () => {
    expect(chat.awaitingApproval?.id).toBe('c1');
    expect(chat.answering).toBe(false);
    chat.apply(told([call('running')]));
    expect([state(), chat.awaitingApproval, chat.answering]).toEqual(['running', null, true]);
    await chat.stop();
    expect(backend.called.at(-1)).toBe('tool_stop');
    chat.apply(told([call('stopped')], true));
    expect([state(), chat.answering]).toEqual(['stopped', false]);
  });

  it('keep what was told while older news was on its way', async () => {
    backend.on('conversation_get', () => {
      chat.apply(told([call('done', 'x')]));
      return conversation('c', null, [user, answer([call('running')])]);
    });
    backend.on('message_choose', () => null as never);
    await chat.chooseBranch('a', null);
    expect(state()).toBe('done');
    // A later fetch is newer again.
    backend.on('conversation_get', () =>
      conversation('c', null, [user, answer([call('failed', 'y')])]),
    );
    await chat.chooseBranch('a', null);
    expect(state()).toBe('failed');
  });

  it('of other chats change nothing', () => {
    chat.apply({ ...told([call('running')]), conversation: 'other' } as AppEvent);
    expect(state()).toBe('asking');
  });
});
