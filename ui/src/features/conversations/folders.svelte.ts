/** Folders of conversations, mirrored from the application. */
import type { Backend } from '../../backend/backend';
import type { AppEvent, Folder } from '../../backend/bindings';
import { buildFolderTree } from './folder-tree';

export class FoldersState {
  list = $state.raw<readonly Folder[]>([]);
  readonly tree = $derived(buildFolderTree(this.list));

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

  /** Creates a folder inside `parent`, or at the top level. */
  async add(name: string, parent: string | null = null): Promise<Folder> {
    const folder = await this.#backend.call('folder_add', { name, parent });
    this.#put(folder);
    return folder;
  }

  async rename(id: string, name: string): Promise<void> {
    this.#put(await this.#backend.call('folder_rename', { id, name }));
  }

  /** Moves a folder with its content into another folder, or to the top level. */
  async move(id: string, parent: string | null): Promise<void> {
    this.#put(await this.#backend.call('folder_move', { id, parent }));
  }

  /** Removes a folder. Its content moves up to the folder's parent. */
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
