/**
 * Heights and offsets of the rows of a virtual list. Rows that were never rendered have an estimate, which
 * never changes by itself: nothing moves unless a row was measured. Pure.
 */
export interface VirtualRow {
  readonly key: string;
  /** Height in pixels until it is measured. */
  readonly estimatePx: number;
}

export class RowHeights {
  readonly #measured = new Map<string, number>();
  #rows: readonly VirtualRow[] = [];
  /** Start of each row, then the end of the last; null: must be recomputed. */
  #offsets: number[] | null = null;

  setRows(rows: readonly VirtualRow[]): void {
    this.#rows = rows;
    this.#offsets = null;
  }

  get count(): number {
    return this.#rows.length;
  }

  get total(): number {
    return this.offset(this.#rows.length);
  }

  /** Returns the start of row `index`, in pixels. */
  offset(index: number): number {
    return this.#sums()[Math.max(0, Math.min(index, this.#rows.length))] ?? 0;
  }

  /** Returns the row at `px`, or the last row. */
  at(px: number): number {
    const sums = this.#sums();
    let low = 0;
    let high = this.#rows.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((sums[middle] ?? 0) <= px) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  indexOf(key: string): number {
    return this.#rows.findIndex((row) => row.key === key);
  }

  /** Stores a measured height. Returns the growth against the previous height. */
  measure(key: string, px: number): number {
    const index = this.indexOf(key);
    const row = this.#rows[index];
    if (!row) return 0;
    const before = this.#measured.get(key) ?? row.estimatePx;
    if (before === px) return 0;
    this.#measured.set(key, px);
    this.#offsets = null;
    return px - before;
  }

  #sums(): number[] {
    if (this.#offsets) return this.#offsets;
    const sums = [0];
    let sum = 0;
    for (const row of this.#rows) {
      sum += this.#measured.get(row.key) ?? row.estimatePx;
      sums.push(sum);
    }
    return (this.#offsets = sums);
  }
}

export interface RowRange {
  /** Index of the first rendered row, and one past the last. */
  readonly first: number;
  readonly end: number;
}

/** Rows with focus or selection stay rendered up to this distance from the view. */
const MAX_KEPT_DISTANCE_ROWS = 120;

/** Returns the rows between `top` and `bottom`, extended to the rows in `keep` that are near. */
export function visibleRange(
  heights: RowHeights,
  top: number,
  bottom: number,
  keep: readonly number[] = [],
): RowRange {
  if (heights.count === 0) return { first: 0, end: 0 };
  let first = heights.at(Math.max(0, top));
  let end = heights.at(Math.max(0, bottom)) + 1;
  for (const index of keep) {
    if (index < 0 || index >= heights.count) continue;
    if (index < first && first - index <= MAX_KEPT_DISTANCE_ROWS) first = index;
    if (index >= end && index - end <= MAX_KEPT_DISTANCE_ROWS) end = index + 1;
  }
  return { first, end };
}
