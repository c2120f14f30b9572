/** Toasts: short messages that disappear by themselves. */
import type { ButtonAction } from './button-action';

export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: 'plain' | 'bad';
  readonly action?: ButtonAction;
}

const SHOWN_MS = 10_000;
/** More at once is noise; the oldest is dropped. */
const MAX_TOASTS = 4;

export class Toasts {
  list = $state.raw<readonly Toast[]>([]);
  #next = 1;

  show(toast: Omit<Toast, 'id'>): void {
    const id = this.#next++;
    this.list = [...this.list, { ...toast, id }].slice(-MAX_TOASTS);
    setTimeout(() => this.dismiss(id), SHOWN_MS);
  }

  dismiss(id: number): void {
    this.list = this.list.filter((it) => it.id !== id);
  }
}
