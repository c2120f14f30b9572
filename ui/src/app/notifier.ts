/** Tells of answers that took long and ended while the window wasn't in front. */
import type { AppEvent, ConversationSummary } from '../backend/bindings';
import type { Inglenook } from './inglenook.svelte';
import { t } from '../i18n';

/** Whoever waits shorter than this has not gone away. */
export const LONG_MS = 10_000;

export class Notifier {
  readonly #app: Inglenook;
  /** When each running turn was first seen, by its conversation. */
  readonly #began = new Map<string, number>();

  constructor(app: Inglenook) {
    this.#app = app;
  }

  apply(event: AppEvent): void {
    if (event.type === 'conversation_removed') this.#began.delete(event.id);
    if (event.type === 'conversation_changed') this.#see(event.conversation, Date.now());
  }

  #see({ id, title, active_turn }: ConversationSummary, nowMs: number): void {
    const began = this.#began.get(id);
    if (active_turn !== null) {
      if (began === undefined) this.#began.set(id, nowMs);
      return;
    }
    this.#began.delete(id);
    if (began === undefined || nowMs - began < LONG_MS) return;
    if (document.hasFocus() || !this.#app.settings.on('notify')) return;
    void this.#app.backend.notify?.(title, t('chat.answer_done')).catch(() => undefined);
  }
}
