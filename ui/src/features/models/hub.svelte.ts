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
  HubToken,
  ModelFit,
  Recommendation,
} from '../../backend/bindings';

import {
  estimateBytes,
  figuresOfOffer,
  isLocalSort,
  NO_FILTER,
  passes,
  sortEntries,
  type EntrySort,
  type HubEntry,
  type HubFigures,
  type HubFilter,
} from './hub-entries';

const DEBOUNCE_MS = 300;

export class HubState {
  query = $state('');
  sort = $state<EntrySort>('trending');
  filter = $state.raw<HubFilter>(NO_FILTER);
  models = $state.raw<readonly HubModel[]>([]);
  /** Repository of the model whose card is open. */
  opened = $state<string | null>(null);
  next = $state.raw<string | null>(null);
  /** Why the hub could not be reached; then only the shipped catalogue is listed. */
  offline = $state.raw<ErrorInfo | null>(null);
  error = $state.raw<ErrorInfo | null>(null);
  busy = $state(false);
  hasSearched = $state(false);
  /** Recommended catalogue model for this computer. */
  recommendation = $state.raw<Recommendation | null>(null);
  /** The recommendation is being computed. */
  isRecommending = $state(false);
  /** Where the access token is stored. Null: not loaded yet. */
  token = $state.raw<HubToken | null>(null);

  /** Size and fit by repository, and of the catalogue by id. */
  #figures = $state.raw<Readonly<Record<string, HubFigures>>>({});
  /** The models that pass the filter, in the chosen order. */
  readonly entries = $derived.by((): readonly HubEntry[] => {
    const all = this.models.map((model) => ({ model, figures: this.figuresOf(model) }));
    return sortEntries(
      all.filter((it) => passes(it, this.filter)),
      this.sort,
    );
  });

  readonly #backend: Backend;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #request = 0;
  /** As `isRecommending`, without effects that ask again when it changes. */
  #recommends = false;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Loads the first page when the view is opened for the first time. */
  loadOnce(): void {
    if (this.hasSearched) return;
    void this.#search(null);
    void this.recommend();
    void this.#loadOffers();
  }

  /** Loads the recommendation. Needs no network; without one, the list still works. */
  async recommend(): Promise<void> {
    if (this.recommendation !== null || this.#recommends) return;
    this.#recommends = this.isRecommending = true;
    this.recommendation = await this.#backend.call('model_recommend', {}).catch(() => null);
    this.#recommends = this.isRecommending = false;
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

  sortBy(sort: EntrySort): void {
    this.sort = sort;
    // Size and speed are known here: the same models in another order.
    if (!isLocalSort(sort)) void this.#search(null);
  }

  figuresOf({ offer, repository }: HubModel): HubFigures | null {
    return (offer && this.#figures[offer.id]) ?? this.#figures[repository] ?? null;
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

  /** Sizes and fits of the shipped catalogue: no network is needed. */
  async #loadOffers(): Promise<void> {
    const offers = await this.#backend.call('catalog_fits', {}).catch(() => []);
    this.#addFigures(offers.map((it) => [it.id, figuresOfOffer(it)]));
  }

  /** Estimates the usual file of models that the catalogue does not have. */
  async #estimate(models: readonly HubModel[]): Promise<void> {
    const unknown = models.filter((it) => it.offer === null && this.figuresOf(it) === null);
    const found = await Promise.all(unknown.map((it) => this.#figuresFor(it)));
    this.#addFigures(found.filter((it) => it !== null));
  }

  async #figuresFor(model: HubModel): Promise<[string, HubFigures] | null> {
    const bytes = estimateBytes(model);
    if (bytes === null) return null;
    const { parameters, context_length } = model;
    const facts = { bytes, parameters, context_length, dtype: null };
    // A row works without an estimate.
    const fit = await this.#backend.call('model_fit', { facts }).catch(() => null);
    return fit && [model.repository, { bytes, isEstimate: true, fit }];
  }

  #addFigures(figures: readonly (readonly [string, HubFigures])[]): void {
    this.#figures = { ...this.#figures, ...Object.fromEntries(figures) };
  }

  async #search(after: string | null): Promise<void> {
    const request = ++this.#request;
    const { query } = this;
    const sort = isLocalSort(this.sort) ? 'trending' : this.sort;
    this.hasSearched = true;
    this.busy = true;
    try {
      const page = await this.#backend.call('hub_search', { query, sort, after });
      if (request !== this.#request) return;
      this.models = after === null ? page.models : [...this.models, ...page.models];
      this.next = page.next;
      this.offline = page.offline;
      this.error = null;
      void this.#estimate(page.models);
    } catch (thrown) {
      if (request === this.#request) this.error = asErrorInfo(thrown);
    } finally {
      if (request === this.#request) this.busy = false;
    }
  }
}
