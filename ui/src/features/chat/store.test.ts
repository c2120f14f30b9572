import { flushSync } from 'svelte';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { TurnEventKind } from '../../backend/bindings';
import { BackendError } from '../../backend/backend';
import { ChatState } from './store.svelte';
import { FakeBackend } from '../../test/fake-backend';
import { STATS, conversation, message } from '../../test/fixtures';

const user = message({ id: 'u', role: 'user', text: 'Hello' });
const writing = message({ id: 'a', parent: 'u', state: 'streaming' });
const STARTED = { turn: 't', conversation: 'c', user_message: 'u', assistant_message: 'a' };

const text = (piece: string): TurnEventKind => ({ type: 'text', text: piece, ids: [1] });
const DONE: TurnEventKind = { type: 'done', stats: STATS };

/** Lets all pending microtasks run. */
async function settle() {
  for (let i = 0; i < 10; i++) await Promise.resolve();
  flushSync();
}

describe('ChatState', () => {
  let backend: FakeBackend;
  let chat: ChatState;

  beforeEach(() => {
    vi.useFakeTimers();
    backend = new FakeBackend();
    backend.on('send', () => STARTED);
    backend.on('turn_cancel', () => null);
    backend.on('conversation_get', () => conversation('c', 't', [user, writing]));
    chat = new ChatState(backend);
  });

  const shown = () => chat.shown.map((it) => `${it.state} ${it.text}`);
  const finish = (answer: string) =>
    backend.on('conversation_get', () =>
      conversation('c', null, [user, message({ id: 'a', text: answer, stats: STATS })]),
    );

  it('sends, streams and ends with what was stored', async () => {
    expect(await chat.send('Hello', null)).toBe(true);
    expect(chat.id).toBe('c');
    expect(chat.answering).toBe(true);
    backend.emit('t', [text('Good ')]);
    backend.emit('t', [text('day.')]);
    await settle();
    expect(shown()).toEqual(['complete Hello', 'streaming Good day.']);
    finish('Good day.');
    backend.emit('t', [DONE]);
    backend.end('t');
    await settle();
    expect(shown()).toEqual(['complete Hello', 'complete Good day.']);
    expect(chat.answering).toBe(false);
  });

  it('keeps the text with the user when it is not accepted', async () => {
    backend.on('send', () => {
      throw new BackendError({ code: 'busy', message: 'No.', remedy: 'Wait.' });
    });
    expect(await chat.send('Hello', null)).toBe(false);
    expect(chat.error).toMatchObject({ code: 'busy', remedy: 'Wait.' });
  });

  it('leaving does not stop the turn, and coming back replays it', async () => {
    await chat.send('Hello', null);
    backend.emit('t', [text('Good ')]);
    chat.startNew();
    expect(chat.shown).toEqual([]);
    backend.emit('t', [text('day.')]);
    await settle();
    expect(chat.shown).toEqual([]);
    await chat.open('c');
    await settle();
    expect(shown().at(-1)).toBe('streaming Good day.');
    expect(backend.watched.at(-1)).toEqual(['t', 0]);
    expect(backend.called).not.toContain('turn_cancel');
  });

  it('asks again for what a gap left out', async () => {
    await chat.send('Hello', null);
    backend.emit('t', [text('Good ')]);
    backend.lose('t', text('old '));
    backend.emit('t', [text('day.')]);
    await settle();
    expect(shown().at(-1)).toBe('streaming Good ');
    await vi.advanceTimersByTimeAsync(300);
    await settle();
    expect(backend.watched).toEqual([
      ['t', 0],
      ['t', 1],
    ]);
    expect(shown().at(-1)).toBe('streaming Good old day.');
  });

  it('finds a broken stream again, from where it was', async () => {
    await chat.send('Hello', null);
    backend.emit('t', [text('Good ')]);
    backend.breakOff('t');
    await vi.advanceTimersByTimeAsync(300);
    backend.emit('t', [text('day.')]);
    await settle();
    expect(backend.watched.at(-1)).toEqual(['t', 1]);
    expect(shown().at(-1)).toBe('streaming Good day.');
  });

  it('takes what is stored when the turn is no longer known', async () => {
    await chat.send('Hello', null);
    backend.on('conversation_get', () =>
      conversation('c', null, [user, message({ id: 'a', text: 'Good', state: 'interrupted' })]),
    );
    backend.breakOff('t', 'turn.unknown');
    await vi.advanceTimersByTimeAsync(300);
    expect(shown().at(-1)).toBe('interrupted Good');
    expect(chat.answering).toBe(false);
  });

  it('stops', async () => {
    await chat.send('Hello', null);
    await chat.stop();
    expect(backend.called).toContain('turn_cancel');
  });

  it('does not send twice at once', async () => {
    const first = chat.send('Hello', null);
    expect(await chat.send('Hello', null)).toBe(false);
    expect(await first).toBe(true);
    expect(await chat.send('Hello', null)).toBe(false);
    expect(backend.called.filter((it) => it === 'send')).toHaveLength(1);
  });

  it('follows what another window asks in the same conversation', async () => {
    finish('Good day.');
    await chat.open('c');
    backend.on('conversation_get', () => conversation('c', 't', [user, writing]));
    const { summary } = conversation('c', 't', []);
    chat.apply({ type: 'conversation_changed', conversation: summary });
    await settle();
    backend.emit('t', [text('From afar.')]);
    await settle();
    expect(shown().at(-1)).toBe('streaming From afar.');
  });

  it('closes a conversation that was deleted elsewhere', async () => {
    await chat.open('c');
    chat.apply({ type: 'conversation_removed', id: 'c' });
    expect(chat.id).toBeNull();
  });

  it('runs no timer when nothing is answered', async () => {
    await chat.send('Hello', null);
    finish('x');
    backend.emit('t', [DONE]);
    backend.end('t');
    await settle();
    expect(vi.getTimerCount()).toBe(0);
  });
});
