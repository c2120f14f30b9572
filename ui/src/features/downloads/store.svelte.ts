/** Downloads, mirrored from the application. */
import type { Backend } from '../../backend/backend';
import type { AppEvent, Download } from '../../backend/bindings';

export class DownloadsState {
  /** Oldest first, in queue order. */
  list = $state.raw<readonly Download[]>([]);

  /** Downloads that are neither done nor failed. */
  readonly active = $derived(
    this.list.filter((it) => it.state.state !== 'done' && it.state.state !== 'failed'),
  );
  /** Progress of all active downloads, 0 to 1; null without any. */
  readonly fraction = $derived.by(() => {
    const total = this.active.reduce((sum, it) => sum + it.total, 0);
    const bytes = this.active.reduce((sum, it) => sum + it.bytes, 0);
    return total === 0 ? null : bytes / total;
  });

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async load(): Promise<void> {
    this.list = byAge(await this.#backend.call('download_list', {}));
  }

  find(id: string | null): Download | undefined {
    return this.list.find((it) => it.id === id);
  }

  /** Returns the download of this file, if there is one. */
  of(repository: string, path: string): Download | undefined {
    return this.list.find((it) => it.repository === repository && it.path === path);
  }

  apply(event: AppEvent): void {
    if (event.type === 'download_changed') this.#put(event.download);
    else if (event.type === 'download_removed') this.#drop(event.id);
  }

  /** Starts a download and returns it. Without a path, the application picks the usual file. */
  async start(repository: string, path: string | null, revision: string | null): Promise<Download> {
    const download = await this.#backend.call('download_start', { repository, path, revision });
    this.#put(download);
    return download;
  }

  async pause(id: string): Promise<void> {
    this.#put(await this.#backend.call('download_pause', { id }));
  }

  /** Resumes or retries a download. */
  async resume(id: string): Promise<void> {
    this.#put(await this.#backend.call('download_resume', { id }));
  }

  async cancel(id: string, keep_part: boolean): Promise<void> {
    await this.#backend.call('download_cancel', { id, keep_part });
    this.#drop(id);
  }

  #put(download: Download): void {
    this.list = byAge([...this.list.filter((it) => it.id !== download.id), download]);
  }

  #drop(id: string): void {
    this.list = this.list.filter((it) => it.id !== id);
  }
}

const byAge = (list: readonly Download[]): Download[] =>
  [...list].sort((a, b) => a.created_ms - b.created_ms);
