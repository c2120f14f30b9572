/** Overlays tool call updates from events on fetched messages, which may be older. */
import type { Backend } from '../../backend/backend';
import type {
  AppEvent,
  Conversation,
  Message,
  ToolCall,
  ToolRunState,
} from '../../backend/bindings';
import { isOver, type LiveTurn } from './reducer';

export class ToolCallUpdates {
  /** Turns that answer with the tools' results, by the message with the calls. */
  readonly #answerTurns = new Map<string, string>();
  /** Latest update of each message, with its sequence number. */
  readonly #updates = new Map<string, { calls: readonly ToolCall[]; at: number }>();
  #count = 0;

  clear(): void {
    this.#updates.clear();
    this.#answerTurns.clear();
  }

  /** Applies an event to the messages of conversation `id`. */
  apply(event: AppEvent, id: string | null, messages: readonly Message[]): readonly Message[] {
    if (event.type !== 'tool_calls' || event.conversation !== id) return messages;
    this.#updates.set(event.message, { calls: event.calls, at: ++this.#count });
    if (event.turn !== null) this.#answerTurns.set(event.message, event.turn);
    return this.overlay(messages);
  }

  /** Returns the turn that answers a message's tool results, and forgets it. */
  takeAnswerTurn(message: string): string | null {
    const turn = this.#answerTurns.get(message) ?? null;
    this.#answerTurns.delete(message);
    return turn;
  }

  /** Applies all updates. */
  overlay(messages: readonly Message[]): Message[] {
    return this.#overlay(messages, 0);
  }

  /** Fetches a conversation. Updates that arrive during the fetch are newer and win. */
  async fetchConversation(backend: Backend, id: string): Promise<Conversation> {
    const known = this.#count;
    const conversation = await backend.call('conversation_get', { id });
    return { ...conversation, messages: this.#overlay(conversation.messages, known) };
  }

  /** Applies the updates after sequence number `known`. */
  #overlay(messages: readonly Message[], known: number): Message[] {
    return messages.map((message) => {
      const told = this.#updates.get(message.id);
      return told && told.at > known ? { ...message, tool_calls: [...told.calls] } : message;
    });
  }
}

/** Returns the first tool call in this state of the last message. */
export const findCall = (messages: readonly Message[], state: ToolRunState): ToolCall | null =>
  messages.at(-1)?.tool_calls.find((call) => call.run?.state === state) ?? null;

/** Stops the turn, or the running tool calls if there is no turn. */
export async function stopTurn(
  backend: Backend,
  live: LiveTurn | null,
  messages: readonly Message[],
): Promise<void> {
  const message = messages.at(-1)?.id;
  if (live && !isOver(live)) await backend.call('turn_cancel', { turn: live.turn });
  else if (message && findCall(messages, 'running')) await backend.call('tool_stop', { message });
}
