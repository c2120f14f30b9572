/**
 * What of a prompt is the system prompt and what is the conversation so far, counted by the application. Asked for
 * when someone looks; an answer to an older question is dropped.
 */
import type { Backend } from '../backend/backend';

export interface Asked {
  readonly conversation: string | null;
  readonly model: string | null;
  /** What stands before the conversation, for the model alone. */
  readonly system: string;
}

export class ContextParts {
  /** Null: not known. */
  counts = $state.raw<{ readonly system: number; readonly before: number } | null>(null);

  readonly #backend: Backend;
  #question = 0;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async ask({ conversation, model, system }: Asked): Promise<void> {
    const question = ++this.#question;
    const count = async (of: string | null, text: string) => {
      const { tokens } = await this.#backend.call('draft_count', { conversation: of, model, text });
      return tokens;
    };
    try {
      // The markup around an empty question belongs to no part of it.
      const before = await count(conversation, '');
      const words = system === '' ? 0 : (await count(null, system)) - (await count(null, ''));
      if (question === this.#question) this.counts = { system: words, before };
    } catch {
      if (question === this.#question) this.counts = null;
    }
  }
}
