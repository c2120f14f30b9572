/** Overlays the running turn on the stored messages. Pure. */
import type { Message, MessageState } from '../../backend/bindings';
import type { LiveTurn } from './reducer';

export function withLive(messages: readonly Message[], live: LiveTurn | null): readonly Message[] {
  if (live === null) return messages;
  const at = messages.findIndex((it) => it.id === live.message);
  const message = messages[at];
  // Once the turn is over and stored, the stored message wins.
  if (!message || (message.state !== 'streaming' && message.stats !== null)) return messages;
  return messages.with(at, overlay(message, live));
}

function overlay(message: Message, live: LiveTurn): Message {
  return {
    ...message,
    text: longer(live.text, message.text),
    reasoning: longer(live.reasoning, message.reasoning),
    tool_calls: live.calls.length > 0 ? [...live.calls] : message.tool_calls,
    state: stateOf(message, live),
    stats: live.stats ?? message.stats,
    error: live.error ?? message.error,
  };
}

/** A replay starts empty while part of the answer is stored: the visible text never shrinks. */
const longer = (live: string, stored: string): string =>
  live.length >= stored.length ? live : stored;

function stateOf(message: Message, live: LiveTurn): MessageState {
  if (live.phase === 'failed') return 'failed';
  if (live.phase !== 'done') return 'streaming';
  if (message.state !== 'streaming') return message.state;
  return live.stats?.finish === 'cancelled' ? 'stopped' : 'complete';
}
