/** All conversations, mirrored from the application, newest first. */
import type { Backend } from '../../backend/backend';
import type { AppEvent, ConversationOptions, ConversationSummary } from '../../backend/bindings';

export class ConversationsState {
  list = $state.raw<readonly ConversationSummary[]>([]);
  loaded = $state(false);

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async load(): Promise<void> {
    this.list = await this.#backend.call('conversations_list', {});
    this.loaded = true;
  }

  find(id: string | null): ConversationSummary | undefined {
    return this.list.find((it) => it.id === id);
  }

  apply(event: AppEvent): void {
    if (event.type === 'conversation_changed') this.#put(event.conversation);
    else if (event.type === 'conversation_removed') this.#drop(event.id);
  }

  async rename(id: string, title: string): Promise<void> {
    this.#put(await this.#backend.call('conversation_rename', { id, title }));
  }

  async remove(id: string): Promise<void> {
    await this.#backend.call('conversation_delete', { id });
    this.#drop(id);
  }

  async restore(id: string): Promise<void> {
    this.#put(await this.#backend.call('conversation_restore', { id }));
  }

  async setModel(id: string, model: string): Promise<void> {
    this.#put(await this.#backend.call('conversation_set_model', { id, model }));
  }

  async pin(id: string, pinned: boolean): Promise<void> {
    this.#put(await this.#backend.call('conversation_pin', { id, pinned }));
  }

  /** Moves a conversation into a folder, or out of any (null). */
  async move(id: string, folder: string | null): Promise<void> {
    this.#put(await this.#backend.call('conversation_move', { id, folder }));
  }

  async setOptions(id: string, options: ConversationOptions): Promise<void> {
    this.#put(await this.#backend.call('conversation_options', { id, options }));
  }

  #put(summary: ConversationSummary): void {
    const rest = this.list.filter((it) => it.id !== summary.id);
    this.list = [summary, ...rest].sort((a, b) => b.activity - a.activity);
  }

  #drop(id: string): void {
    this.list = this.list.filter((it) => it.id !== id);
  }
}
