/** Parts of messages that other features draw; the view of the chat connects them. */
import type { Snippet } from 'svelte';
import type { ButtonAction } from '../../shared/button-action';
import type { Attachment, GuideReply, Message, Citation } from '../../backend/bindings';

export interface MessageSlots {
  /** The files that were sent with a message. */
  readonly sentFiles: Snippet<[files: readonly Attachment[]]>;
  /** The passages that an answer could draw on. */
  readonly sources: Snippet<[sources: readonly Citation[]]>;
  /** The article of the user guide that an answer is, and what it can open. */
  readonly guideSource: Snippet<[reply: GuideReply]>;
  /** What can be done about an answer that failed or ended early. */
  readonly actionsAfter: (message: Message) => readonly ButtonAction[];
}
