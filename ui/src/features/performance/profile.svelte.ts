/**
 * Where the time of answers goes: measured only while it is switched on, and asked for only then. What is shown is of the
 * last answer that was measured.
 */
import type { Backend } from '../../backend/backend';
import type { ProfileInfo } from '../../backend/bindings';

export class ProfileState {
  info = $state.raw<ProfileInfo | null>(null);

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async ask(): Promise<void> {
    try {
      this.info = await this.#backend.call('profile', {});
    } catch {
      // What can't be had is shown as missing.
      this.info = null;
    }
  }

  async set(on: boolean): Promise<void> {
    this.info = await this.#backend.call('profile_switch', { on });
  }

  /** An answer has ended. */
  ended(): void {
    if (this.info?.is_on) void this.ask();
  }
}
