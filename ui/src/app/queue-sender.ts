/** Sends what waits in the queue: where the chat is open through it, elsewhere without it. */
import type { AppEvent, Attachment } from '../backend/bindings';
import type { LiveTurn } from '../features/chat/reducer';
import type { Inglenook } from './inglenook.svelte';
import { Queue } from '../features/chat/message-queue.svelte';

export class Queued {
  readonly queue = new Queue();
  readonly #app: Inglenook;

  constructor(app: Inglenook) {
    this.#app = app;
  }

  /** Waits until the answer is complete; false: too many wait already. */
  add(text: string, files: readonly Attachment[] = []): boolean {
    const { place } = this.#app.chat;
    return place !== null && this.queue.add(place, text, files);
  }

  /** Sends what waits longest in the open conversation. */
  async next(): Promise<void> {
    const { chat } = this.#app;
    const { place } = chat;
    const next = this.queue.of(place)[0];
    if (place === null || !next || chat.answering || chat.sending) return;
    this.queue.take(place, next.id);
    if (!(await this.#app.send(next.text, next.files))) this.queue.back(place, next);
  }

  /** The turn that was watched is over. */
  ended(place: string, turn: LiveTurn): void {
    const complete = turn.phase === 'done' && turn.stats?.finish !== 'cancelled';
    if (complete && place === this.#app.chat.place) void this.next();
  }

  apply(event: AppEvent): void {
    if (event.type === 'conversation_removed') this.queue.forget(event.id);
    if (event.type !== 'conversation_changed') return;
    const { id, active_turn } = event.conversation;
    if (active_turn !== null || id === this.#app.chat.id || this.queue.of(id).length === 0) return;
    void this.#app.attempt(() => this.#elsewhere(id));
  }

  /** A conversation that is not looked at has its answer. */
  async #elsewhere(id: string): Promise<void> {
    const { backend, chat } = this.#app;
    const { messages } = await backend.call('conversation_get', { id });
    const next = this.queue.of(id)[0];
    if (!next || messages.at(-1)?.state !== 'complete' || id === chat.id) return;
    this.queue.take(id, next.id);
    try {
      const attachments = (next.files ?? []).map((it) => it.id);
      await backend.call('send', { conversation: id, text: next.text, attachments });
    } catch (thrown) {
      this.queue.back(id, next);
      throw thrown;
    }
  }
}
