/** Library maintenance: scanned folders, disk use, imports, removed models. */
import type { Backend } from '../../backend/backend';
import type {
  AppEvent,
  ImportHow,
  ImportProgress,
  LibraryUse,
  ModelEntry,
  ModelFolder,
  RemovedModel,
} from '../../backend/bindings';

export class LibraryState {
  folders = $state.raw<readonly ModelFolder[]>([]);
  use = $state.raw<LibraryUse | null>(null);
  removed = $state.raw<readonly RemovedModel[]>([]);
  /** Running imports, by path. */
  imports = $state.raw<readonly ImportProgress[]>([]);

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async load(): Promise<void> {
    const [folders, use, removed] = await Promise.all([
      this.#backend.call('model_folders', {}),
      this.#backend.call('library_use', {}),
      this.#backend.call('models_removed', {}),
    ]);
    this.folders = folders;
    this.use = use;
    this.removed = removed;
  }

  /** Disk use of a model in bytes; null: unknown. */
  bytesOf(id: string): number | null {
    const use = this.use?.models.find((it) => it.id === id);
    return use ? use.disk_bytes + use.made_bytes : null;
  }

  apply(event: AppEvent): void {
    if (event.type !== 'model_import') return;
    const { progress } = event;
    const rest = this.imports.filter((it) => it.path !== progress.path);
    const over = progress.error !== null || progress.done_bytes >= progress.total_bytes;
    this.imports = over ? rest : [...rest, progress];
  }

  import(path: string, how: ImportHow): Promise<ModelEntry> {
    return this.#backend.call('model_import', { path, how });
  }

  async cancelImport(path: string): Promise<void> {
    await this.#backend.call('model_import_cancel', { path });
  }

  async addFolder(path: string): Promise<void> {
    const scan = await this.#backend.call('model_folder_add', { path });
    this.folders = scan.folders;
    await this.load();
  }

  async removeFolder(path: string): Promise<void> {
    await this.#backend.call('model_folder_remove', { path });
    await this.load();
  }

  async scan(): Promise<void> {
    const scan = await this.#backend.call('models_scan', {});
    this.folders = scan.folders;
    await this.load();
  }

  async restore(id: string): Promise<void> {
    await this.#backend.call('model_restore', { id });
    await this.load();
  }

  /** Deletes removed models for good. */
  async purge(): Promise<void> {
    await this.#backend.call('models_purge', {});
    await this.load();
  }
}
