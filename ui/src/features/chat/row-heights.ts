/**
 * How high the rows of a long list are, and so where each begins. A row that was never drawn has a guess;
 * a guess never changes by itself, so that nothing moves unless a row was really measured. Pure.
 */
export interface RowKey {
  readonly key: string;
  /** Pixels, until it is measured. */
  readonly guess: number;
}

export class Heights {
  readonly #measured = new Map<string, number>();
  #rows: readonly RowKey[] = [];
  /** Where each row begins, and where the last one ends; null: to be added up again. */
  #offsets: number[] | null = null;

  setRows(rows: readonly RowKey[]): void {
    this.#rows = rows;
    this.#offsets = null;
  }

  get count(): number {
    return this.#rows.length;
  }

  get total(): number {
    return this.offset(this.#rows.length);
  }

  /** Where row `index` begins. */
  offset(index: number): number {
    return this.#sums()[Math.max(0, Math.min(index, this.#rows.length))] ?? 0;
  }

  /** The row that `px` lies in; the last one for what lies behind all. */
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

  /** By how much the row grew against what it was taken for. */
  measure(key: string, px: number): number {
    const index = this.indexOf(key);
    const row = this.#rows[index];
    if (!row) return 0;
    const before = this.#measured.get(key) ?? row.guess;
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
      sum += this.#measured.get(row.key) ?? row.guess;
      sums.push(sum);
    }
    return (this.#offsets = sums);
  }
}

export interface Range {
  /** The first row that is drawn, and the first after it that isn't. */
  readonly first: number;
  readonly end: number;
}

/** Rows that are kept though they are out of sight: the one with the focus, those with selected text. */
const KEEP_ROWS = 120;

/** The rows between `top` and `bottom`, and those `keep` names if they aren't far. */
export function rangeOf(
  heights: Heights,
  top: number,
  bottom: number,
  keep: readonly number[] = [],
): Range {
  if (heights.count === 0) return { first: 0, end: 0 };
  let first = heights.at(Math.max(0, top));
  let end = heights.at(Math.max(0, bottom)) + 1;
  for (const index of keep) {
    if (index < 0 || index >= heights.count) continue;
    if (index < first && first - index <= KEEP_ROWS) first = index;
    if (index >= end && index - end <= KEEP_ROWS) end = index + 1;
  }
  return { first, end };
}
