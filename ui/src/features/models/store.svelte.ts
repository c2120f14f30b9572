/** Installed and remote models, and adding a model file. */
import { asErrorInfo, type Backend } from '../../backend/backend';
import type { AppEvent, ErrorInfo, ModelEntry } from '../../backend/bindings';

export class ModelsState {
  list = $state.raw<readonly ModelEntry[]>([]);
  /** A file is being chosen or validated. */
  adding = $state(false);
  error = $state.raw<ErrorInfo | null>(null);

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Whether the system has a file dialog. Without one, the user types a path. */
  get canPick(): boolean {
    return this.#backend.pickModelFile !== undefined;
  }

  async load(): Promise<void> {
    this.list = await this.#backend.call('models_list', {});
  }

  /** Models that answer. The others compute embeddings for search in files, or draft for a model. */
  get answering(): readonly ModelEntry[] {
    return this.list.filter((it) => !it.embeds && !it.only_drafts);
  }

  find(id: string | null | undefined): ModelEntry | undefined {
    return this.list.find((it) => it.id === id);
  }

  apply(event: AppEvent): void {
    if (event.type === 'model_changed') this.#put(event.model);
    else if (event.type === 'model_removed') this.#drop(event.id);
  }

  /** Lets the user choose a file and adds it. Null: nothing was added; see `error`. */
  pick(): Promise<ModelEntry | null> {
    return this.#adding(async () => {
      const path = (await this.#backend.pickModelFile?.()) ?? null;
      return path === null ? null : this.#backend.call('model_add', { path });
    });
  }

  add(path: string): Promise<ModelEntry | null> {
    return this.#adding(() => this.#backend.call('model_add', { path }));
  }

  /** Removes a model. It can be restored for a while. */
  async remove(id: string): Promise<void> {
    await this.#backend.call('model_remove', { id });
    this.#drop(id);
  }

  async restore(id: string): Promise<void> {
    this.#put(await this.#backend.call('model_restore', { id }));
  }

  /** Unloads a model from memory; it stays in the library. */
  async unload(id: string): Promise<void> {
    await this.#backend.call('model_unload', { id });
  }

  async #adding(work: () => Promise<ModelEntry | null>): Promise<ModelEntry | null> {
    if (this.adding) return null;
    this.adding = true;
    this.error = null;
    try {
      const entry = await work();
      if (entry) this.#put(entry);
      return entry;
    } catch (thrown) {
      this.error = asErrorInfo(thrown);
      return null;
    } finally {
      this.adding = false;
    }
  }

  #put(entry: ModelEntry): void {
    const at = this.list.findIndex((it) => it.id === entry.id);
    this.list = at < 0 ? [...this.list, entry] : this.list.with(at, entry);
  }

  #drop(id: string): void {
    this.list = this.list.filter((it) => it.id !== id);
  }
}
