/** Sends queued messages: through the chat store for the open conversation, directly for others. */
import type { AppEvent, Attachment } from '../backend/bindings';
import type { LiveTurn } from '../features/chat/reducer';
import type { Inglenook } from './inglenook.svelte';
import { MessageQueue } from '../features/chat/message-queue.svelte';

export class QueueSender {
  readonly queue = new MessageQueue();
  readonly #app: Inglenook;

  constructor(app: Inglenook) {
    this.#app = app;
  }

  /** Queues a message until the answer is complete. Returns false if the queue is full. */
  add(text: string, files: readonly Attachment[] = []): boolean {
    const { key } = this.#app.chat;
    return key !== null && this.queue.add(key, text, files);
  }

  /** Sends the oldest queued message of the open conversation. */
  async sendNext(): Promise<void> {
    const { chat } = this.#app;
    const { key } = chat;
    const next = this.queue.of(key)[0];
    if (key === null || !next || chat.answering || chat.sending) return;
    this.queue.take(key, next.id);
    if (!(await this.#app.send(next.text, next.files))) this.queue.putBack(key, next);
  }

  /** Called when a watched turn is over. */
  turnEnded(key: string, turn: LiveTurn): void {
    const complete = turn.phase === 'done' && turn.stats?.finish !== 'cancelled';
    if (complete && key === this.#app.chat.key) void this.sendNext();
  }

  apply(event: AppEvent): void {
    if (event.type === 'conversation_removed') this.queue.forget(event.id);
    if (event.type !== 'conversation_changed') return;
    const { id, active_turn } = event.conversation;
    if (active_turn !== null || id === this.#app.chat.id || this.queue.of(id).length === 0) return;
    void this.#app.attempt(() => this.#sendUnopened(id));
  }

  /** Sends the next message of a conversation that is not open, after its answer is complete. */
  async #sendUnopened(id: string): Promise<void> {
    const { backend, chat } = this.#app;
    const { messages } = await backend.call('conversation_get', { id });
    const next = this.queue.of(id)[0];
    if (!next || messages.at(-1)?.state !== 'complete' || id === chat.id) return;
    this.queue.take(id, next.id);
    try {
      const attachments = (next.files ?? []).map((it) => it.id);
      await backend.call('send', { conversation: id, text: next.text, attachments });
    } catch (thrown) {
      this.queue.putBack(id, next);
      throw thrown;
    }
  }
}
