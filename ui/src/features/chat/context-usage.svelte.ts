/**
 * What a prompt consists of before the draft, counted by the application. Asked for when someone looks; an answer to an
 * older question is dropped.
 */
import type { Backend } from '../../backend/backend';
import type { ContextParts as Counts, ConversationOptions } from '../../backend/bindings';

export interface Asked {
  readonly conversation: string | null;
  readonly model: string | null;
  /** What a chat that has no message yet will have of its own. */
  readonly options: ConversationOptions | null;
}

export class ContextParts {
  /** Null: not known. */
  counts = $state.raw<Counts | null>(null);

  readonly #backend: Backend;
  #question = 0;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async ask(asked: Asked): Promise<void> {
    const question = ++this.#question;
    const counts = await this.#backend
      .call('context_parts', { ...asked, text: '' })
      .catch(() => null);
    if (question === this.#question) this.counts = counts;
  }
}
