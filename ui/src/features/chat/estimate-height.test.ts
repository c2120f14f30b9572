import { expect, it } from 'vitest';
import { estimateHeightPx, isLongMessage } from './estimate-height';

it.each([
  ['Hello', 1 * 26 + 68, false],
  ['a\n\nb', 2.5 * 26 + 68, false],
  ['x'.repeat(88 * 16), 16 * 26 + 68, false],
  ['x'.repeat(88 * 16 + 1), 17 * 26 + 68, true],
  ['line\n'.repeat(17), 17.5 * 26 + 68, true],
])('a message of some lines: %#', (text, px, isLong) => {
  expect(estimateHeightPx(text)).toBe(Math.round(px));
  expect(isLongMessage(text)).toBe(isLong);
});
