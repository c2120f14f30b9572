import { describe, expect, it } from 'vitest';
import type { AppEvent, Finish, ToolCall, ToolRunState } from '../../backend/bindings';
import { ChatState } from './store.svelte';
import { TEMPORARY } from './temporary-chat';
import { FakeBackend } from '../../test/fake-backend';
import { STATS } from '../../test/fixtures';

const settled = () => new Promise((done) => setTimeout(done, 0));

describe('a temporary chat', () => {
  function begun() {
    const backend = new FakeBackend();
    const asked: string[][] = [];
    let turns = 0;
    backend.on('temporary_send', ({ messages }) => {
      asked.push(messages.map((it) => `${it.role} ${it.text}`));
      return { turn: `t${++turns}` };
    });
    const ended: string[] = [];
    const chat = new ChatState(backend, { turnEnded: (place) => ended.push(place) });
    chat.startTemporary();
    const answer = async (text: string) => {
      backend.emit(`t${turns}`, [
        { type: 'text', text, ids: [1] },
        { type: 'done', stats: STATS },
      ]);
      backend.end(`t${turns}`);
      await settled();
    };
    return { backend, chat, asked, answer, ended };
  }

  const shown = (chat: ChatState) => chat.shown.map((it) => `${it.role} ${it.state} ${it.text}`);

  it('goes on with all that was said, and asks for nothing else', async () => {
    const { backend, chat, asked, answer } = begun();
    expect(await chat.send('Hello', 'm')).toBe(true);
    expect(chat.answering).toBe(true);
    await answer('Good day.');
    await chat.send('And?', null);
    await answer('Well.');
    expect(asked[1]).toEqual(['user Hello', 'assistant Good day.', 'user And?']);
    expect(shown(chat).at(-1)).toBe('assistant complete Well.');
    expect(new Set(backend.called)).toEqual(new Set(['temporary_send']));
    expect(chat.id).toBeNull();
  });

  it('answers again and edits by forgetting what came after', async () => {
    const { chat, asked, answer } = begun();
    await chat.send('One', 'm');
    await answer('first');
    await chat.send('Two', 'm');
    await answer('second');
    await chat.regenerate(chat.shown.at(-1)?.id ?? '');
    await answer('other');
    expect(asked[2]).toEqual(['user One', 'assistant first', 'user Two']);
    await chat.edit(chat.shown[0]?.id ?? '', 'Else');
    await answer('new');
    expect(shown(chat)).toEqual(['user complete Else', 'assistant complete new']);
  });

  it('says that an answer is complete, so that what waits is sent', async () => {
    const { chat, answer, ended } = begun();
    expect(chat.key).toBe(TEMPORARY);
    await chat.send('One', 'm');
    expect(ended).toEqual([]);
    await answer('first');
    expect([chat.answering, ended]).toEqual([false, [TEMPORARY]]);
  });

  it('is gone when it is left', async () => {
    const { chat, answer } = begun();
    await chat.send('One', 'm');
    await answer('first');
    chat.startNew();
    expect([chat.shown.length, chat.temporary]).toEqual([0, false]);
  });
});

describe('tools in a temporary chat', () => {
  const call = (state?: ToolRunState): ToolCall => {
    const named = { id: 'c1', name: 'echo', arguments: '{}' };
    if (!state) return named;
    const run = { server: 's', server_name: 'lab', tool: 'echo', state, result: 'brought' };
    return { ...named, run: { ...run, cut: 0, duration_ms: 1, findings: [], at_limit: false } };
  };

  const told = (message: string, state: ToolRunState, turn: string | null, over: boolean) =>
    ({
      type: 'tool_calls',
      conversation: null,
      message,
      calls: [call(state)],
      over,
      turn,
    }) satisfies AppEvent;

  async function asked() {
    const backend = new FakeBackend();
    const sent: unknown[] = [];
    let turns = 0;
    backend.on('temporary_send', ({ messages, options }) => {
      sent.push({ messages, options });
      return { turn: `t${++turns}` };
    });
    backend.on('tool_stop', () => null);
    const ended: string[] = [];
    const chat = new ChatState(backend, { turnEnded: (place) => ended.push(place) });
    chat.startTemporary();
    await chat.send('Say it', 'm', { options: { tools: ['s'] } as never });
    const end = async (
      turn: string,
      kinds: Parameters<typeof backend.emit>[1],
      finish: Finish = 'stop',
    ) => {
      backend.emit(turn, [...kinds, { type: 'done', stats: { ...STATS, finish } }]);
      backend.end(turn);
      await settled();
    };
    await end('t1', [{ type: 'tool_call', call: call() }], 'tool_calls');
    return { backend, chat, sent, end, ended };
  }

  const state = (chat: ChatState, at: number) => chat.shown.at(at)?.tool_calls[0]?.run?.state;

  it('ask, run and are answered by the next turn', async () => {
    const { chat, sent, end, ended } = await asked();
    chat.apply(told('t1', 'asking', null, false));
    expect([chat.awaitingApproval?.id, chat.answering]).toEqual(['c1', false]);
    chat.apply(told('t1', 'running', null, false));
    expect([state(chat, -1), chat.answering]).toEqual(['running', true]);
    chat.apply(told('t1', 'done', 'n1', true));
    expect([state(chat, -2), chat.shown.length, chat.answering]).toEqual(['done', 3, true]);
    expect(ended).toEqual([]);
    await end('n1', [{ type: 'text', text: 'Done.', ids: [1] }]);
    expect(ended).toEqual([TEMPORARY]);
    expect(chat.shown.at(-1)).toMatchObject({
      id: 'n1',
      text: 'Done.',
      state: 'complete',
      model: 'm',
    });
    await chat.send('Again', null);
    expect(sent[1]).toMatchObject({
      messages: [
        { role: 'user', text: 'Say it' },
        { role: 'assistant', text: '', tool_calls: [call('done')] },
        { role: 'assistant', text: 'Done.' },
        { role: 'user', text: 'Again' },
      ],
    });
    expect(sent[0]).toMatchObject({ options: { tools: ['s'] } });
  });

  it('may be told of before the end of their own turn', async () => {
    const backend = new FakeBackend();
    backend.on('temporary_send', () => ({ turn: 't1' }));
    const chat = new ChatState(backend);
    chat.startTemporary();
    await chat.send('Say it', 'm');
    chat.apply(told('t1', 'done', 'n1', true));
    expect(chat.shown).toHaveLength(2);
    backend.emit('t1', [
      { type: 'tool_call', call: call() },
      { type: 'done', stats: STATS },
    ]);
    backend.end('t1');
    await settled();
    expect([state(chat, -2), chat.shown.at(-1)?.id, chat.answering]).toEqual(['done', 'n1', true]);
  });

  it('are stopped when something else is said, and when the chat is left', async () => {
    const { backend, chat } = await asked();
    chat.apply(told('t1', 'asking', null, false));
    await chat.send('Never mind', null);
    expect(backend.called.slice(-2)).toEqual(['tool_stop', 'temporary_send']);
    const other = await asked();
    other.chat.apply(told('t1', 'running', null, false));
    other.chat.startNew();
    expect(other.backend.called.at(-1)).toBe('tool_stop');
  });
});
