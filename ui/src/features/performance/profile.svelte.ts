/**
 * Profile of the last measured answer. Measured and requested only while profiling is enabled.
 */
import type { Backend } from '../../backend/backend';
import type { ProfileInfo } from '../../backend/bindings';

export class ProfileState {
  info = $state.raw<ProfileInfo | null>(null);

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async refresh(): Promise<void> {
    try {
      this.info = await this.#backend.call('profile', {});
    } catch {
      // Missing figures are shown as missing.
      this.info = null;
    }
  }

  async setEnabled(on: boolean): Promise<void> {
    this.info = await this.#backend.call('profile_switch', { on });
  }

  /** Refreshes the profile after an answer, if profiling is enabled. */
  turnEnded(): void {
    if (this.info?.is_on) void this.refresh();
  }
}
