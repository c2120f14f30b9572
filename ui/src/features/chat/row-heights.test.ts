import { describe, expect, it } from 'vitest';
import { RowHeights, visibleRange } from './row-heights';
import { estimateHeightPx } from './estimate-height';

function list(count: number, estimatePx = 100): RowHeights {
  const heights = new RowHeights();
  heights.setRows(Array.from({ length: count }, (_, i) => ({ key: `m${i}`, estimatePx })));
  return heights;
}

describe('RowHeights', () => {
  it('begins with guesses and takes measures', () => {
    const heights = list(10);
    expect(heights.total).toBe(1000);
    expect(heights.measure('m3', 160)).toBe(60);
    expect(heights.measure('m3', 160)).toBe(0);
    expect(heights.measure('nobody', 5)).toBe(0);
    expect([heights.offset(3), heights.offset(4), heights.total]).toEqual([300, 460, 1060]);
  });

  it.each([
    [-5, 0],
    [0, 0],
    [99, 0],
    [100, 1],
    [950, 9],
    [5000, 9],
  ])('row at %i is %i', (px, expected) => {
    expect(list(10).at(px)).toBe(expected);
  });

  it('keeps what was measured when rows come and go', () => {
    const heights = list(3);
    heights.measure('m1', 40);
    heights.setRows([{ key: 'm1', estimatePx: 100 }]);
    expect(heights.total).toBe(40);
  });
});

describe('visibleRange', () => {
  it.each<[number, number, number[], [number, number]]>([
    [0, 250, [], [0, 3]],
    [-400, 250, [], [0, 3]],
    [1000, 1250, [], [10, 13]],
    [1000, 1250, [8], [8, 13]],
    [1000, 1250, [20], [10, 21]],
    [1000, 1250, [-1, 999], [10, 13]],
    [50_000, 60_000, [0], [499, 500]],
  ])('%i to %i, keeping %j', (top, bottom, keep, [first, end]) => {
    expect(visibleRange(list(500), top, bottom, keep)).toEqual({ first, end });
  });

  it('is empty for an empty list', () => {
    expect(visibleRange(list(0), 0, 900)).toEqual({ first: 0, end: 0 });
  });
});

it('guesses more for more', () => {
  expect(estimateHeightPx('')).toBeLessThan(estimateHeightPx('x'.repeat(200)));
  expect(estimateHeightPx('a\nb\nc\nd')).toBeGreaterThan(estimateHeightPx('a b c d'));
});
