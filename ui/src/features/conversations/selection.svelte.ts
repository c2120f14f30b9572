/** Conversations selected in the sidebar, to be moved, pinned or deleted together. */
import { SvelteSet } from 'svelte/reactivity';

export class Selection {
  readonly #ids = new SvelteSet<string>();
  /** Start of a range selection. */
  #anchor: string | null = null;

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
    this.#anchor = id;
    if (!this.#ids.delete(id)) this.#ids.add(id);
  }

  /** Selects the range from the anchor to `id`, in display order. */
  extendTo(id: string, order: readonly string[]): void {
    const [a, b] = [order.indexOf(this.#anchor ?? id), order.indexOf(id)];
    if (a < 0 || b < 0) return this.toggle(id);
    for (const it of order.slice(Math.min(a, b), Math.max(a, b) + 1)) this.#ids.add(it);
  }

  /** Clears the selection and makes `id` the anchor. */
  restart(id: string): void {
    this.#ids.clear();
    this.#anchor = id;
  }

  remove(id: string): void {
    this.#ids.delete(id);
  }

  clear(): void {
    this.#ids.clear();
  }
}
