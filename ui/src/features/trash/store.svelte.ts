/** What lies in the trash, as the application said last. */
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

  /** Whatever comes or goes may have come from here or gone there. */
  apply(event: AppEvent): void {
    if (!this.loaded) return;
    if (event.type === 'conversation_removed') void this.load();
    else if (event.type === 'conversation_changed') this.#drop(event.conversation.id);
  }

  /** For good. */
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
