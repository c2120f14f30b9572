import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DraftCountState } from '../src/lib/state/draft-count.svelte';
import { FakeBackend } from './fake-backend';

const counted = (tokens: number) => ({ tokens, context_limit: 100, can_think_or_not: false });
const draft = (text: string) => ({ conversation: null, text, model: null });

describe('the count of a draft', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('is asked for once the keys rest', async () => {
    const backend = new FakeBackend();
    backend.on('draft_count', ({ text }) => counted(text.length));
    const state = new DraftCountState(backend);
    for (const text of ['a', 'ab', 'abc']) state.want(draft(text));
    await vi.advanceTimersByTimeAsync(1000);
    expect(backend.called).toEqual(['draft_count']);
    expect(state.count).toEqual(counted(3));
  });

  it('is missing where it cannot be had', async () => {
    const backend = new FakeBackend();
    const state = new DraftCountState(backend);
    state.want(draft('a'));
    await vi.advanceTimersByTimeAsync(1000);
    expect(state.count).toBeNull();
  });
});
