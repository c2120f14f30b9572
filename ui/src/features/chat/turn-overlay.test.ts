import { describe, expect, it } from 'vitest';
import { newTurn } from './reducer';
import { withLive } from './turn-overlay';
import { STATS, message } from '../../test/fixtures';

const user = message({ id: 'u', role: 'user', text: 'Hello' });
const stored = message({ id: 'm', state: 'streaming', text: 'Good d' });

describe('withLive', () => {
  it('leaves the messages as they are without a turn', () => {
    const list = [user, stored];
    expect(withLive(list, null)).toBe(list);
  });

  it('never shows less than what is stored while a replay catches up', () => {
    const live = { ...newTurn('t', 'm'), phase: 'answering' as const, seq: 1, text: 'Go' };
    expect(withLive([user, stored], live)[1]?.text).toBe('Good d');
    expect(withLive([user, stored], { ...live, text: 'Good day' })[1]?.text).toBe('Good day');
  });

  it('keeps the identity of the other messages', () => {
    expect(withLive([user, stored], newTurn('t', 'm'))[0]).toBe(user);
  });

  it('tells how the turn ended until the store does', () => {
    const done = { ...newTurn('t', 'm'), phase: 'done' as const, stats: STATS };
    expect(withLive([stored], done)[0]?.state).toBe('complete');
    const cancelled = { ...done, stats: { ...STATS, finish: 'cancelled' as const } };
    expect(withLive([stored], cancelled)[0]?.state).toBe('stopped');
    const final = message({ id: 'm', text: 'Good day.', stats: STATS });
    expect(withLive([final], done)[0]).toBe(final);
  });
});
