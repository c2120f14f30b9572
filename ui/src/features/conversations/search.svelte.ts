/**
 * Full-text search over all messages. Debounced; results of older queries are dropped.
 */
import { asErrorInfo, type Backend } from '../../backend/backend';
import type { ErrorInfo, SearchResult } from '../../backend/bindings';

const DEBOUNCE_MS = 120;

export class SearchState {
  query = $state('');
  /** Null without a query, or before the first result. */
  result = $state.raw<SearchResult | null>(null);
  error = $state.raw<ErrorInfo | null>(null);

  readonly active = $derived(this.query.trim() !== '');

  readonly #backend: Backend;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  setQuery(query: string): void {
    this.query = query;
    clearTimeout(this.#timer);
    if (query.trim() === '') {
      this.result = null;
      this.error = null;
      return;
    }
    this.#timer = setTimeout(() => void this.#search(query), DEBOUNCE_MS);
  }

  async #search(query: string): Promise<void> {
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
