import { expect, it } from 'vitest';
import { rowBeside } from './row-focus';

it.each([
  ['a', 1, 'b'],
  ['b', -1, 'a'],
  ['c', 1, null],
  ['a', -1, null],
  [null, 1, 'a'],
  [null, -1, 'c'],
  ['gone', 1, 'a'],
] as const)('beside %s, %d further, lies %s', (id, step, found) => {
  expect(rowBeside(['a', 'b', 'c'], id, step)).toBe(found);
});

it('there is no row beside none', () => {
  expect(rowBeside([], null, 1)).toBeNull();
});
