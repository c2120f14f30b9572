/** State of the local server. Requested when it may be visible, never by a timer. */
import type { Backend } from '../../backend/backend';
import type { ServerState } from '../../backend/bindings';

export class LocalServerState {
  /** Null: not loaded yet, or unknown. */
  current = $state.raw<ServerState | null>(null);

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async refresh(): Promise<void> {
    this.current = await this.#backend.call('server_state', {}).catch(() => null);
  }
}
