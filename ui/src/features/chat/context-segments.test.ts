import { describe, expect, it } from 'vitest';
import { contextSegments, type TokenCounts } from './context-segments';
import { ContextUsage } from './context-usage.svelte';
import { FakeBackend } from '../../test/fake-backend';

const counted = (over: Partial<TokenCounts>): TokenCounts => ({
  used: 300,
  limit: 1000,
  system: 40,
  tools: 0,
  files: 0,
  drafted: 0,
  before: 240,
  longest: 0,
  ...over,
});

describe('the parts of a context', () => {
  it.each<[string, Partial<TokenCounts>, string]>([
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
    [
      'tools and files',
      { tools: 30, files: 50, drafted: 20 },
      'system 40, tools 30, files 70, history 120, message 40, answer 700',
    ],
    [
      'what came from the project',
      { tools: 30, files: 50, drafted: 20, project: { instructions: 40, files: 35 } },
      'project_system 40, tools 30, project_files 35, files 35, history 120, message 40, answer 700',
    ],
    [
      'a project whose instructions were replaced',
      { files: 50, project: { instructions: 0, files: 50 } },
      'system 40, project_files 50, history 150, message 60, answer 700',
    ],
    ['notes', { memory: 25 }, 'system 40, memory 25, history 175, message 60, answer 700'],
    ['no draft', { before: 300 }, 'system 40, history 260, answer 700'],
    ['nobody says how much it holds', { limit: 0 }, 'system 40, history 200, message 60'],
    ['more than it holds', { used: 1200, before: 240 }, 'system 40, history 200, message 960'],
    ['counts that came at different times', { before: 400, system: 500 }, 'system 300, answer 700'],
  ])('%s', (_, over, expected) => {
    const parts = contextSegments(counted(over));
    expect(parts.map(({ kind, tokens }) => `${kind} ${tokens}`).join(', ')).toBe(expected);
    const { used, limit } = counted(over);
    expect(parts.reduce((sum, it) => sum + it.tokens, 0)).toBe(Math.max(used, limit));
  });
});

describe('their counts', () => {
  const asked = { conversation: 'c', model: null, options: null };
  const counts = { before: 107, system: 9, tools: 20, files: 0 };

  it('are asked for once, and the last question counts', async () => {
    const backend = new FakeBackend();
    backend.on('context_parts', ({ conversation }) =>
      conversation === 'c' ? counts : { ...counts, before: 0 },
    );
    const state = new ContextUsage(backend);
    await Promise.all([state.refresh({ ...asked, conversation: null }), state.refresh(asked)]);
    expect(state.counts).toEqual(counts);
    expect(backend.called).toEqual(['context_parts', 'context_parts']);
  });

  it('are missing where they cannot be had', async () => {
    const state = new ContextUsage(new FakeBackend());
    await state.refresh(asked);
    expect(state.counts).toBeNull();
  });
});
