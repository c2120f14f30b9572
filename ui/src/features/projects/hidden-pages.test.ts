import { describe, expect, it } from 'vitest';
import { summarizeHiddenPages } from './hidden-pages';

describe('pages that are left out', () => {
  it.each([
    [{ count: 1, reason: 'no_room' }, '1 scanned page left out: no room in the prompt'],
    [{ count: 3, reason: 'no_room' }, '3 scanned pages left out: no room in the prompt'],
    [{ count: 2, reason: 'unseen' }, '2 scanned pages, not read: this model can’t see images'],
  ] as const)('%o: %s', (pages, expected) => {
    expect(summarizeHiddenPages(pages)).toBe(expected);
  });
});
