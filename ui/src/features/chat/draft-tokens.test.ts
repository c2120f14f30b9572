import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DraftCountState } from './draft-tokens.svelte';
import { FakeBackend } from '../../test/fake-backend';
import { attachment } from '../../test/fixtures';

const counted = (tokens: number) => ({
  tokens,
  context_limit: 100,
  can_think_or_not: false,
  attachments: [],
});
const draft = (text: string) => ({ conversation: null, text, model: null });

describe('the count of a draft', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('is asked for once the keys rest', async () => {
    const backend = new FakeBackend();
    backend.on('draft_count', ({ text }) => counted(text.length));
    const state = new DraftCountState(backend);
    for (const text of ['a', 'ab', 'abc']) state.update(draft(text));
    await vi.advanceTimersByTimeAsync(1000);
    expect(backend.called).toEqual(['draft_count']);
    expect(state.count).toEqual(counted(3));
  });

  it('tells of each file what it costs', async () => {
    const backend = new FakeBackend();
    const cost = { id: 'a', tokens: 20, tokens_whole: 70, whole: false };
    backend.on('draft_count', () => ({ ...counted(9), attachments: [cost] }));
    const state = new DraftCountState(backend);
    const file = { name: 'a.txt', kind: 'text', bytes: 3, findings: [] } as const;
    const [known, other] = [
      { ...file, id: 'a', findings: [] },
      { ...file, id: 'b', findings: [] },
    ];
    expect(state.withCost(known)).toBe(known);
    state.update(draft('a'));
    await vi.advanceTimersByTimeAsync(1000);
    expect(state.withCost(known)).toMatchObject({ tokens: 70, whole: false, is_about: false });
    expect(state.withCost(other)).toBe(other);
  });

  it('adds what scanned pages cost to their file, and tells where they are not shown', async () => {
    const backend = new FakeBackend();
    const cost = (tokens: number) => ({ id: 'a', tokens, tokens_whole: tokens, whole: true });
    const file = attachment('a', { scanned: { images: 2, left_out: 0, is_all: false } });
    const state = new DraftCountState(backend);
    for (const [pages, tokens, isHidden] of [
      [[256, 100], 376, false],
      [[0, 0], 20, true],
    ] as const) {
      const attachments = [cost(20), ...pages.map(cost)];
      backend.on('draft_count', () => ({ ...counted(9), attachments }));
      state.update(draft('a'));
      await vi.advanceTimersByTimeAsync(1000);
      expect(state.withCost(file)).toMatchObject({ tokens, whole: true });
      expect(state.hidesPages(file)).toBe(isHidden);
    }
  });

  it('is missing where it cannot be had', async () => {
    const backend = new FakeBackend();
    const state = new DraftCountState(backend);
    state.update(draft('a'));
    await vi.advanceTimersByTimeAsync(1000);
    expect(state.count).toBeNull();
  });

  it('is neither asked for nor kept where it is worth nothing', async () => {
    const backend = new FakeBackend();
    backend.on('draft_count', ({ text }) => counted(text.length));
    const state = new DraftCountState(backend);
    state.update(draft('a'));
    state.clear();
    await vi.advanceTimersByTimeAsync(1000);
    expect(backend.called).toEqual([]);
    state.update(draft('ab'));
    await vi.advanceTimersByTimeAsync(1000);
    expect(state.count).toEqual(counted(2));
    state.clear();
    expect(state.count).toBeNull();
  });
});
