/**
 * Messages that were written while an answer was being written. They are sent one by one, each when the answer
 * before it is complete; an answer that was stopped or failed holds them until the user says so. Kept for as
 * long as this window or tab lives, those of a temporary chat for as long as it is open.
 */
import { SvelteMap } from 'svelte/reactivity';
import type { Attachment } from '../../backend/bindings';
import { TEMPORARY } from './temporary-chat';

export interface Waiting {
  readonly id: number;
  readonly text: string;
  /** Files that go with it. */
  readonly files?: readonly Attachment[];
}

const PREFIX = 'inglenook.queue.';
/** More than this waiting is a mistake. */
export const MOST_QUEUED = 20;

export class Queue {
  readonly #items = new SvelteMap<string, readonly Waiting[]>();
  #next = Date.now();

  of(conversation: string | null): readonly Waiting[] {
    if (conversation === null) return [];
    return this.#items.get(conversation) ?? stored(conversation);
  }

  /** False: too many wait already. */
  add(conversation: string, text: string, files: readonly Attachment[] = []): boolean {
    const items = this.of(conversation);
    if (items.length >= MOST_QUEUED) return false;
    const item = { id: this.#next++, text, ...(files.length > 0 ? { files } : {}) };
    this.#set(conversation, [...items, item]);
    return true;
  }

  /** Takes a message out of the queue; undefined: it isn't in it. */
  take(conversation: string, id: number): Waiting | undefined {
    const items = this.of(conversation);
    this.#set(
      conversation,
      items.filter((it) => it.id !== id),
    );
    return items.find((it) => it.id === id);
  }

  /** Puts one back to the front. */
  back(conversation: string, item: Waiting): void {
    this.#set(conversation, [item, ...this.of(conversation)]);
  }

  forget(conversation: string): void {
    this.#set(conversation, []);
  }

  #set(conversation: string, items: readonly Waiting[]): void {
    this.#items.set(conversation, items);
    // It is kept nowhere.
    if (conversation === TEMPORARY) return;
    const key = PREFIX + conversation;
    if (items.length === 0) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(items));
  }
}

function stored(conversation: string): readonly Waiting[] {
  const text = sessionStorage.getItem(PREFIX + conversation);
  return text === null ? [] : (JSON.parse(text) as Waiting[]);
}
