/** Search results by chat, in the order of their newest match. */
import type { MessageHit, SearchResult } from '../../backend/bindings';

export interface ChatHits {
  readonly conversation: string;
  readonly title: string;
  /** The title itself matches. */
  readonly isTitleHit: boolean;
  readonly messages: readonly MessageHit[];
}

/** Chats whose titles match come first, as the application lists them. */
export function groupHits({ titles, messages }: SearchResult): ChatHits[] {
  const chats = new Map<string, { title: string; isTitleHit: boolean; messages: MessageHit[] }>();
  for (const { conversation, title } of titles) {
    chats.set(conversation, { title, isTitleHit: true, messages: [] });
  }
  for (const hit of messages) {
    const chat = chats.get(hit.conversation) ?? {
      title: hit.title,
      isTitleHit: false,
      messages: [],
    };
    chat.messages.push(hit);
    chats.set(hit.conversation, chat);
  }
  return [...chats].map(([conversation, chat]) => ({ conversation, ...chat }));
}
