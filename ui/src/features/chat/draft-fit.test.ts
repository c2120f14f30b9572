import { describe, expect, it } from 'vitest';
import { fits, leastTokens, remedyFor, type DraftSize } from './draft-fit';

const size = (over: Partial<DraftSize>): DraftSize => ({
  tokens: 500,
  limit: 1000,
  strategy: 'window',
  before: null,
  ...over,
});
const before = { before: 900, system: 50, tools: 100 };

describe('a draft', () => {
  it.each([
    ['with room for an answer', size({}), true],
    ['without room for an answer', size({ tokens: 990 }), false],
    ['of an unknown context', size({ tokens: 99_999, limit: 0 }), true],
    ['whose older messages make way', size({ tokens: 1100, before }), true],
    ['whose older messages stay', size({ tokens: 1100, before, strategy: 'off' }), false],
    ['that is too long by itself', size({ tokens: 1900, before }), false],
  ])('%s', (_, draft, expected) => {
    expect(fits(draft)).toBe(expected);
  });

  it('keeps its own tokens, the instructions and the tools', () => {
    expect(leastTokens(size({ tokens: 1100, before }))).toBe(200 + 50 + 100);
  });
});

it.each([
  [5000, true, true, 'attach'],
  [100, true, true, 'larger'],
  [100, false, true, 'model'],
  [100, false, false, 'shorten'],
] as const)('%d characters, may grow: %j, others: %j', (chars, canGrow, hasOthers, remedy) => {
  expect(remedyFor({ chars }, { canGrow, hasOthers })).toBe(remedy);
});
