/** Conversations of the sidebar that are chosen together, to be moved, pinned or deleted at once. */
import { SvelteSet } from 'svelte/reactivity';

export class Selection {
  readonly #ids = new SvelteSet<string>();
  /** From here a range is chosen. */
  #from: string | null = null;

  get size(): number {
    return this.#ids.size;
  }

  get ids(): string[] {
    return [...this.#ids];
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  toggle(id: string): void {
    this.#from = id;
    if (!this.#ids.delete(id)) this.#ids.add(id);
  }

  /** All from the last one that was touched to this one, in the order they are shown in. */
  reach(id: string, order: readonly string[]): void {
    const [a, b] = [order.indexOf(this.#from ?? id), order.indexOf(id)];
    if (a < 0 || b < 0) return this.toggle(id);
    for (const it of order.slice(Math.min(a, b), Math.max(a, b) + 1)) this.#ids.add(it);
  }

  /** An ordinary click: nothing is chosen, and ranges begin here. */
  start(id: string): void {
    this.#ids.clear();
    this.#from = id;
  }

  drop(id: string): void {
    this.#ids.delete(id);
  }

  clear(): void {
    this.#ids.clear();
  }
}
