/**
 * Token counts of the prompt before the draft, by kind. Requested when the user looks;
 * responses to older requests are dropped.
 */
import type { Backend } from '../../backend/backend';
import type { ContextParts as Counts, ConversationOptions } from '../../backend/bindings';

export interface ContextQuery {
  readonly conversation: string | null;
  readonly model: string | null;
  /** Options of a chat without messages. */
  readonly options: ConversationOptions | null;
  /** The folder that a chat without messages will lie in. */
  readonly folder?: string | null;
}

export class ContextUsage {
  /** Null: unknown. */
  counts = $state.raw<Counts | null>(null);

  readonly #backend: Backend;
  #question = 0;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async refresh(query: ContextQuery): Promise<void> {
    const question = ++this.#question;
    const counts = await this.#backend
      .call('context_parts', { ...query, text: '' })
      .catch(() => null);
    if (question === this.#question) this.counts = counts;
  }
}
