/**
 * How many tokens sending the draft would cost, as the application counts it. Asked for a moment after the
 * last key, one question at a time; an answer to an older question is dropped.
 */
import type { Backend } from '../backend/backend';
import type { DraftCount } from '../backend/bindings';

const PAUSE_MS = 150;

export interface Draft {
  readonly conversation: string | null;
  readonly text: string;
  readonly model: string | null;
}

export class DraftCountState {
  /** Null: not known, or not worth a word. */
  count = $state.raw<DraftCount | null>(null);

  readonly #backend: Backend;
  #wanted: Draft | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #asking = false;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  want(draft: Draft): void {
    this.#wanted = draft;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#ask(), PAUSE_MS);
  }

  async #ask(): Promise<void> {
    if (this.#asking || this.#wanted === null) return;
    this.#asking = true;
    const draft = this.#wanted;
    try {
      const count = await this.#backend.call('draft_count', draft);
      if (this.#wanted === draft) this.count = count;
    } catch {
      // Sending says what is wrong; a count that can't be had is only missing.
      if (this.#wanted === draft) this.count = null;
    } finally {
      this.#asking = false;
    }
    if (this.#wanted !== draft) await this.#ask();
  }
}
