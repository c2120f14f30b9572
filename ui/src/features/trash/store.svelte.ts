/** Deleted conversations, mirrored from the application. */
import type { Backend } from '../../backend/backend';
import type { AppEvent, ConversationSummary } from '../../backend/bindings';

export class TrashState {
  list = $state.raw<readonly ConversationSummary[]>([]);
  loaded = $state(false);

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async load(): Promise<void> {
    this.list = await this.#backend.call('trash_list', {});
    this.loaded = true;
  }

  /** Any conversation that appears or disappears may have left or entered the trash. */
  apply(event: AppEvent): void {
    if (!this.loaded) return;
    if (event.type === 'conversation_removed') void this.load();
    else if (event.type === 'conversation_changed') this.#drop(event.conversation.id);
  }

  /** Deletes a conversation for good. */
  async forget(id: string): Promise<void> {
    await this.#backend.call('conversation_forget', { id });
    this.#drop(id);
  }

  async empty(): Promise<void> {
    await this.#backend.call('trash_empty', {});
    this.list = [];
  }

  #drop(id: string): void {
    this.list = this.list.filter((it) => it.id !== id);
  }
}
