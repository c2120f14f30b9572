/** Parts of messages that other features draw; the view of the chat connects them. */
import type { Snippet } from 'svelte';
import type { Attachment, Message, Citation } from '../../backend/bindings';

export interface MessageSlots {
  /** The files that were sent with a message. */
  readonly sentFiles: Snippet<[files: readonly Attachment[]]>;
  /** The passages that an answer could draw on. */
  readonly sources: Snippet<[sources: readonly Citation[]]>;
  /** What can be done about an answer that failed or ended early. */
  readonly errorActions: Snippet<[message: Message]>;
}
