/**
 * Messages queued while an answer is being written. Each is sent when the answer before it is complete; a
 * stopped or failed answer holds the queue until the user acts. Kept in session storage, except for
 * temporary chats.
 */
import { SvelteMap } from 'svelte/reactivity';
import type { Attachment } from '../../backend/bindings';
import { TEMPORARY } from './temporary-chat';

export interface QueuedMessage {
  readonly id: number;
  readonly text: string;
  /** Attachments of the message. */
  readonly files?: readonly Attachment[];
}

const PREFIX = 'inglenook.queue.';
/** A longer queue is probably a mistake. */
export const MAX_QUEUED = 20;

export class MessageQueue {
  readonly #items = new SvelteMap<string, readonly QueuedMessage[]>();
  #next = Date.now();

  of(conversation: string | null): readonly QueuedMessage[] {
    if (conversation === null) return [];
    return this.#items.get(conversation) ?? readStored(conversation);
  }

  /** Returns false if the queue is full. */
  add(conversation: string, text: string, files: readonly Attachment[] = []): boolean {
    const items = this.of(conversation);
    if (items.length >= MAX_QUEUED) return false;
    const item = { id: this.#next++, text, ...(files.length > 0 ? { files } : {}) };
    this.#set(conversation, [...items, item]);
    return true;
  }

  /** Removes a message from the queue and returns it, if it is there. */
  take(conversation: string, id: number): QueuedMessage | undefined {
    const items = this.of(conversation);
    this.#set(
      conversation,
      items.filter((it) => it.id !== id),
    );
    return items.find((it) => it.id === id);
  }

  /** Puts a message back to the front. */
  putBack(conversation: string, item: QueuedMessage): void {
    this.#set(conversation, [item, ...this.of(conversation)]);
  }

  forget(conversation: string): void {
    this.#set(conversation, []);
  }

  #set(conversation: string, items: readonly QueuedMessage[]): void {
    this.#items.set(conversation, items);
    // Temporary chats are never stored.
    if (conversation === TEMPORARY) return;
    const key = PREFIX + conversation;
    if (items.length === 0) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(items));
  }
}

function readStored(conversation: string): readonly QueuedMessage[] {
  const text = sessionStorage.getItem(PREFIX + conversation);
  return text === null ? [] : (JSON.parse(text) as QueuedMessage[]);
}
