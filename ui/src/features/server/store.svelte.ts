/** State of the local servers, and control of the window's own. Requested when it may be visible. */
import { asErrorInfo, type Backend } from '../../backend/backend';
import type { ErrorInfo, LocalServer, ServerState } from '../../backend/bindings';

type Action =
  'local_server' | 'local_server_start' | 'local_server_stop' | 'local_server_renew_key';

export class LocalServerState {
  /** Whether any server of this data folder listens. Null: not loaded yet, or unknown. */
  current = $state.raw<ServerState | null>(null);
  /** The window's own server. Null: not loaded yet. */
  own = $state.raw<LocalServer | null>(null);
  /** Why the last action failed. */
  error = $state.raw<ErrorInfo | null>(null);
  busy = $state(false);

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async refresh(): Promise<void> {
    this.current = await this.#backend.call('server_state', {}).catch(() => null);
  }

  /** Asks for the window's own server, with its newest requests. */
  async look(): Promise<void> {
    const own = await this.#backend.call('local_server', {}).catch(() => null);
    if (!this.busy && own !== null) this.own = own;
  }

  /** Starts it, or starts it again with the settings of now. */
  readonly start = () => this.#run('local_server_start');
  readonly stop = () => this.#run('local_server_stop');
  /** The old key stops working at once. */
  readonly renewKey = () => this.#run('local_server_renew_key');

  async #run(action: Action): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    try {
      this.own = await this.#backend.call(action, {});
      this.error = null;
    } catch (thrown) {
      this.error = asErrorInfo(thrown);
      this.own = await this.#backend.call('local_server', {}).catch(() => null);
    }
    this.busy = false;
    await this.refresh();
  }
}
