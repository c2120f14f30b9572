/** The local server beside the window: whether it listens. Asked for when someone may look, never by the clock. */
import type { Backend } from '../../backend/backend';
import type { ServerState } from '../../backend/bindings';

export class LocalServer {
  /** Null: not asked for yet, or nobody says. */
  now = $state.raw<ServerState | null>(null);

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async ask(): Promise<void> {
    this.now = await this.#backend.call('server_state', {}).catch(() => null);
  }
}
