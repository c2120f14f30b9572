/**
 * Models that are elsewhere: the catalogue and what the hub has. Asked for a moment after the last key; an answer to
 * an older question is dropped. Nothing is asked before the page is looked at.
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

const PAUSE_MS = 300;

export class HubState {
  query = $state('');
  sort = $state<HubSort>('trending');
  models = $state.raw<readonly HubModel[]>([]);
  next = $state.raw<string | null>(null);
  /** The hub could not be asked: what is shown is the catalogue's. */
  offline = $state.raw<ErrorInfo | null>(null);
  error = $state.raw<ErrorInfo | null>(null);
  busy = $state(false);
  asked = $state(false);
  /** The one model of the catalogue for this computer. */
  recommendation = $state.raw<Recommendation | null>(null);
  /** Where the token is. Null: not asked yet. */
  token = $state.raw<HubToken | null>(null);

  readonly #backend: Backend;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #question = 0;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Once, when the page is looked at for the first time. */
  begin(): void {
    if (this.asked) return;
    void this.#ask(null);
    void this.recommend();
  }

  /** Asks nobody but this computer. Without one, the list is there all the same. */
  async recommend(): Promise<void> {
    this.recommendation ??= await this.#backend.call('model_recommend', {}).catch(() => null);
  }

  async loadToken(): Promise<void> {
    this.token ??= await this.#backend.call('hub_token', {});
  }

  /** Empty: the one that was given here is forgotten. */
  async giveToken(token: string): Promise<void> {
    this.token = await this.#backend.call('hub_token_set', { token });
  }

  want(query: string): void {
    this.query = query;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#ask(null), PAUSE_MS);
  }

  by(sort: HubSort): void {
    this.sort = sort;
    void this.#ask(null);
  }

  again(): Promise<void> {
    return this.#ask(null);
  }

  async more(): Promise<void> {
    if (this.next !== null && !this.busy) await this.#ask(this.next);
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

  async #ask(after: string | null): Promise<void> {
    const question = ++this.#question;
    const { query, sort } = this;
    this.asked = true;
    this.busy = true;
    try {
      const page = await this.#backend.call('hub_search', { query, sort, after });
      if (question !== this.#question) return;
      this.models = after === null ? page.models : [...this.models, ...page.models];
      this.next = page.next;
      this.offline = page.offline;
      this.error = null;
    } catch (thrown) {
      if (question === this.#question) this.error = asErrorInfo(thrown);
    } finally {
      if (question === this.#question) this.busy = false;
    }
  }
}
