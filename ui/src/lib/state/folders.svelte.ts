/** The folders that conversations lie in, as the application said last. */
import type { Backend } from '../backend/backend';
import type { AppEvent, Folder } from '../backend/bindings';

export class FoldersState {
  list = $state.raw<readonly Folder[]>([]);

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async load(): Promise<void> {
    this.list = await this.#backend.call('folders_list', {});
  }

  apply(event: AppEvent): void {
    if (event.type === 'folder_changed') this.#put(event.folder);
    else if (event.type === 'folder_removed') this.#drop(event.id);
  }

  async add(name: string): Promise<Folder> {
    const folder = await this.#backend.call('folder_add', { name });
    this.#put(folder);
    return folder;
  }

  async rename(id: string, name: string): Promise<void> {
    this.#put(await this.#backend.call('folder_rename', { id, name }));
  }

  /** Its conversations stay. */
  async remove(id: string): Promise<void> {
    await this.#backend.call('folder_remove', { id });
    this.#drop(id);
  }

  #put(folder: Folder): void {
    const rest = this.list.filter((it) => it.id !== folder.id);
    this.list = [folder, ...rest].sort((a, b) => a.name.localeCompare(b.name));
  }

  #drop(id: string): void {
    this.list = this.list.filter((it) => it.id !== id);
  }
}
