/** Unsent drafts by conversation, kept in session storage. */
import { SvelteMap } from 'svelte/reactivity';

const PREFIX = 'inglenook.draft.';

export class Drafts {
  readonly #texts = new SvelteMap<string, string>();

  get(conversation: string | null): string {
    const key = keyOf(conversation);
    return this.#texts.get(key) ?? sessionStorage.getItem(key) ?? '';
  }

  set(conversation: string | null, text: string): void {
    const key = keyOf(conversation);
    this.#texts.set(key, text);
    if (text === '') sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, text);
  }
}

const keyOf = (conversation: string | null): string => PREFIX + (conversation ?? 'new');
