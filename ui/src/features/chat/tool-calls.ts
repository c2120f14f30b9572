/** What was told of calls of tools, laid over messages that were fetched. */
import type { Backend } from '../../backend/backend';
import type {
  AppEvent,
  Conversation,
  Message,
  ToolCall,
  ToolRunState,
} from '../../backend/bindings';
import { isOver, type LiveTurn } from './reducer';

export class ToldCalls {
  /** Turns that answer what calls brought, by the message with the calls. */
  readonly #next = new Map<string, string>();
  /** By message, with how much had been told then. */
  readonly #told = new Map<string, { calls: readonly ToolCall[]; at: number }>();
  #count = 0;

  clear(): void {
    this.#told.clear();
    this.#next.clear();
  }

  /** Messages of a conversation once this has happened. */
  apply(event: AppEvent, id: string | null, messages: readonly Message[]): readonly Message[] {
    if (event.type !== 'tool_calls' || event.conversation !== id) return messages;
    this.#told.set(event.message, { calls: event.calls, at: ++this.#count });
    if (event.turn !== null) this.#next.set(event.message, event.turn);
    return this.over(messages);
  }

  /** The turn that answers what the calls of a message brought; once. */
  takeNext(message: string): string | null {
    const turn = this.#next.get(message) ?? null;
    this.#next.delete(message);
    return turn;
  }

  /** With all that was told. */
  over(messages: readonly Message[]): Message[] {
    return this.#over(messages, 0);
  }

  /** A conversation; what was told of it meanwhile is newer. */
  async get(backend: Backend, id: string): Promise<Conversation> {
    const known = this.#count;
    const conversation = await backend.call('conversation_get', { id });
    return { ...conversation, messages: this.#over(conversation.messages, known) };
  }

  /** With what was told after the first `known` times. */
  #over(messages: readonly Message[], known: number): Message[] {
    return messages.map((message) => {
      const told = this.#told.get(message.id);
      return told && told.at > known ? { ...message, tool_calls: [...told.calls] } : message;
    });
  }
}

/** The first call in this state of the message that the chat ends with. */
export const callOf = (messages: readonly Message[], state: ToolRunState): ToolCall | null =>
  messages.at(-1)?.tool_calls.find((call) => call.run?.state === state) ?? null;

/** Stops a turn, or without one the calls that run. */
export async function stop(
  backend: Backend,
  live: LiveTurn | null,
  messages: readonly Message[],
): Promise<void> {
  const message = messages.at(-1)?.id;
  if (live && !isOver(live)) await backend.call('turn_cancel', { turn: live.turn });
  else if (message && callOf(messages, 'running')) await backend.call('tool_stop', { message });
}
