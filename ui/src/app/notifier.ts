/** Sends a desktop notification when a long answer ends while the window has no focus. */
import type { AppEvent, ConversationSummary } from '../backend/bindings';
import type { Inglenook } from './inglenook.svelte';
import { t } from '../i18n';

/** Shorter answers are not announced: the user is probably still watching. */
export const LONG_MS = 10_000;

export class Notifier {
  readonly #app: Inglenook;
  /** Start time of each running turn, by conversation. */
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
