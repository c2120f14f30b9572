/**
 * Looking for words in every message. Asked for a moment after the last key; an answer to an older question is
 * dropped.
 */
import { asErrorInfo, type Backend } from '../../backend/backend';
import type { ErrorInfo, SearchResult } from '../../backend/bindings';

const PAUSE_MS = 120;

export class SearchState {
  query = $state('');
  /** Null: nothing has been found yet, or nothing is looked for. */
  result = $state.raw<SearchResult | null>(null);
  error = $state.raw<ErrorInfo | null>(null);

  readonly active = $derived(this.query.trim() !== '');

  readonly #backend: Backend;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  want(query: string): void {
    this.query = query;
    clearTimeout(this.#timer);
    if (query.trim() === '') {
      this.result = null;
      this.error = null;
      return;
    }
    this.#timer = setTimeout(() => void this.#ask(query), PAUSE_MS);
  }

  async #ask(query: string): Promise<void> {
    try {
      const result = await this.#backend.call('search', { query });
      if (this.query !== query) return;
      this.result = result;
      this.error = null;
    } catch (thrown) {
      if (this.query === query) this.error = asErrorInfo(thrown);
    }
  }
}
