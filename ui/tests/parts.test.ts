import { describe, expect, it } from 'vitest';
import { partsOf, type Counted } from '../src/lib/chat/parts';
import { ContextParts } from '../src/lib/state/context-parts.svelte';
import { FakeBackend } from './fake-backend';

const counted = (over: Partial<Counted>): Counted => ({
  used: 300,
  limit: 1000,
  system: 40,
  before: 240,
  longest: 0,
  ...over,
});

describe('the parts of a context', () => {
  it.each<[string, Partial<Counted>, string]>([
    ['each in its place', {}, 'system 40, history 200, message 60, answer 700'],
    [
      'a longest answer leaves the rest free',
      { longest: 200 },
      'system 40, history 200, message 60, answer 200, free 500',
    ],
    [
      'no longer than there is room',
      { longest: 9000 },
      'system 40, history 200, message 60, answer 700',
    ],
    ['no draft', { before: 300 }, 'system 40, history 260, answer 700'],
    ['nobody says how much it holds', { limit: 0 }, 'system 40, history 200, message 60'],
    ['more than it holds', { used: 1200, before: 240 }, 'system 40, history 200, message 960'],
    ['counts that came at different times', { before: 400, system: 500 }, 'system 300, answer 700'],
  ])('%s', (_, over, expected) => {
    const parts = partsOf(counted(over));
    expect(parts.map(({ kind, tokens }) => `${kind} ${tokens}`).join(', ')).toBe(expected);
    const { used, limit } = counted(over);
    expect(parts.reduce((sum, it) => sum + it.tokens, 0)).toBe(Math.max(used, limit));
  });
});

describe('their counts', () => {
  const asked = { conversation: 'c', model: null, system: 'Be brief.' };

  it('leave the markup around an empty question out', async () => {
    const backend = new FakeBackend();
    backend.on('draft_count', ({ conversation, text }) => ({
      tokens: (conversation === null ? 7 : 107) + text.length,
      context_limit: 100,
      can_think_or_not: false,
      attachments: [],
    }));
    const state = new ContextParts(backend);
    await state.ask(asked);
    expect(state.counts).toEqual({ system: 9, before: 107 });
  });

  it('are missing where they cannot be had', async () => {
    const state = new ContextParts(new FakeBackend());
    await state.ask(asked);
    expect(state.counts).toBeNull();
  });
});
