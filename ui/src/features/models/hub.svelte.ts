/**
 * Models for download: the shipped catalogue and the hub. Debounced; responses to older requests are dropped.
 * No request is sent before the page is opened.
 */
import { asErrorInfo, type Backend } from '../../backend/backend';
import type {
  ErrorInfo,
  HubFile,
  HubFiles,
  HubModel,
  HubSort,
  HubToken,
  ModelFit,
  Recommendation,
} from '../../backend/bindings';

const DEBOUNCE_MS = 300;

export class HubState {
  query = $state('');
  sort = $state<HubSort>('trending');
  models = $state.raw<readonly HubModel[]>([]);
  next = $state.raw<string | null>(null);
  /** Why the hub could not be reached; then only the shipped catalogue is listed. */
  offline = $state.raw<ErrorInfo | null>(null);
  error = $state.raw<ErrorInfo | null>(null);
  busy = $state(false);
  hasSearched = $state(false);
  /** Recommended catalogue model for this computer. */
  recommendation = $state.raw<Recommendation | null>(null);
  /** Where the access token is stored. Null: not loaded yet. */
  token = $state.raw<HubToken | null>(null);

  readonly #backend: Backend;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #request = 0;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Loads the first page when the view is opened for the first time. */
  loadOnce(): void {
    if (this.hasSearched) return;
    void this.#search(null);
    void this.recommend();
  }

  /** Loads the recommendation. Needs no network; without one, the list still works. */
  async recommend(): Promise<void> {
    this.recommendation ??= await this.#backend.call('model_recommend', {}).catch(() => null);
  }

  async loadToken(): Promise<void> {
    this.token ??= await this.#backend.call('hub_token', {});
  }

  /** Stores the access token; an empty one removes it. */
  async setToken(token: string): Promise<void> {
    this.token = await this.#backend.call('hub_token_set', { token });
  }

  search(query: string): void {
    this.query = query;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#search(null), DEBOUNCE_MS);
  }

  sortBy(sort: HubSort): void {
    this.sort = sort;
    void this.#search(null);
  }

  retry(): Promise<void> {
    return this.#search(null);
  }

  async loadMore(): Promise<void> {
    if (this.next !== null && !this.busy) await this.#search(this.next);
  }

  files(repository: string): Promise<HubFiles> {
    return this.#backend.call('hub_files', { repository });
  }

  fit(model: HubModel, file: HubFile): Promise<ModelFit> {
    const facts = {
      bytes: file.bytes,
      parameters: model.parameters,
      context_length: model.context_length,
      dtype: file.quantisation?.toLowerCase() ?? null,
    };
    return this.#backend.call('model_fit', { facts });
  }

  async #search(after: string | null): Promise<void> {
    const request = ++this.#request;
    const { query, sort } = this;
    this.hasSearched = true;
    this.busy = true;
    try {
      const page = await this.#backend.call('hub_search', { query, sort, after });
      if (request !== this.#request) return;
      this.models = after === null ? page.models : [...this.models, ...page.models];
      this.next = page.next;
      this.offline = page.offline;
      this.error = null;
    } catch (thrown) {
      if (request === this.#request) this.error = asErrorInfo(thrown);
    } finally {
      if (request === this.#request) this.busy = false;
    }
  }
}
