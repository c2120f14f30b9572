/** What is known of newer versions of the program. The application holds the truth; its events arrive here. */
import { asErrorInfo, type Backend } from '../../backend/backend';
import type { AppEvent, ErrorInfo, UpdateInfo } from '../../backend/bindings';

type UpdateCall = 'update_check' | 'update_download' | 'update_cancel';

export class UpdatesState {
  /** Null: not loaded yet. */
  info = $state.raw<UpdateInfo | null>(null);
  /** Why the last action failed. */
  error = $state.raw<ErrorInfo | null>(null);
  /** The version that the check at the start found, until the user has been told. */
  #found: string | null = null;
  #isAsking = false;

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Asks the application, which sends no request. */
  async load(): Promise<void> {
    this.info = await this.#backend.call('update_info', {}).catch(() => null);
  }

  readonly check = () => this.#run('update_check');
  readonly download = () => this.#run('update_download');
  readonly cancel = () => this.#run('update_cancel');

  /** Installs the downloaded version and restarts. During an answer the page is asked first, as in closing. */
  async restart(): Promise<void> {
    this.error = null;
    try {
      await this.#backend.restartToUpdate?.();
    } catch (thrown) {
      this.error = asErrorInfo(thrown);
    }
  }

  apply(event: AppEvent): void {
    // A page in a browser updates nothing.
    if (event.type !== 'update_changed' || this.#backend.kind !== 'window') return;
    const wasChecking = this.info?.phase.name === 'checking';
    this.info = event.update;
    const isFound = event.update.phase.name === 'available' && wasChecking && !this.#isAsking;
    if (isFound) this.#found = event.update.offer?.version ?? null;
  }

  /** The version that the user was not told of yet. Null from then on. */
  takeFound(): string | null {
    const version = this.#found;
    this.#found = null;
    return version;
  }

  async #run(name: UpdateCall): Promise<void> {
    this.error = null;
    this.#isAsking = true;
    try {
      this.info = await this.#backend.call(name, {});
    } catch (thrown) {
      this.error = asErrorInfo(thrown);
      await this.load();
    }
    this.#isAsking = false;
  }
}
