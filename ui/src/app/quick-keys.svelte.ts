/** Tells the window which keys open the quick window from any program. */
import { asErrorInfo, type Backend } from '../backend/backend';
import type { ErrorInfo } from '../backend/bindings';
import { keymap } from '../shared/keymap.svelte';

export class QuickKeys {
  /** Why the chosen keys do not work; null: they do, or none are chosen. */
  error = $state.raw<ErrorInfo | null>(null);
  #applied: string | null = null;

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Whether this page belongs to a window that can have such keys. */
  get isPossible(): boolean {
    return this.#backend.setQuickKeys !== undefined;
  }

  async apply(): Promise<void> {
    const keys = keymap.keysOfId('quick-window')[0] ?? null;
    if (keys === this.#applied || !this.#backend.setQuickKeys) return;
    this.#applied = keys;
    try {
      await this.#backend.setQuickKeys(keys);
      this.error = null;
    } catch (thrown) {
      this.error = asErrorInfo(thrown);
      throw thrown;
    }
  }
}
