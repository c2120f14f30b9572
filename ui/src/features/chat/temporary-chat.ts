/** Messages of a temporary chat. They are created here, since the application stores none. */
import type { Backend } from '../../backend/backend';
import type { Attachment, ConversationOptions, Message, TurnStarted } from '../../backend/bindings';
import { findCall } from './tool-calls';
import type { LiveTurn } from './reducer';

/** Key of the temporary chat; there is at most one. */
export const TEMPORARY = 'temporary';

let created = 0;

function message(
  role: 'user' | 'assistant',
  text: string,
  model: string | null,
  attachments: readonly Attachment[] = [],
  id = `temporary-${++created}`,
): Message {
  return {
    id,
    parent: null,
    role,
    text,
    reasoning: '',
    tool_calls: [],
    state: role === 'user' ? 'complete' : 'streaming',
    error: null,
    model,
    stats: null,
    attachments: [...attachments],
    sources: [],
    created_ms: Date.now(),
    version: 1,
    versions: 1,
  };
}

/** A question and the messages before it. */
export interface TemporaryQuestion {
  /** Messages before the question. */
  readonly before: readonly Message[];
  readonly question: string;
  readonly files: readonly Attachment[];
}

/** An empty answer. Its id is the turn's id, which its tool calls refer to as well. */
const emptyAnswer = (turn: string, by: string | null): Message =>
  message('assistant', '', by, [], turn);

/** A started turn and the message that it writes. */
export type StartedTurn = Pick<TurnStarted, 'turn' | 'assistant_message'> & {
  conversation: string | null;
};

/**
 * Sends the question after `before`, replacing whatever followed. Without `model`, the model of the last
 * answer is used again.
 */
export async function ask(
  backend: Backend,
  shown: readonly Message[],
  { before, question: text, files }: TemporaryQuestion,
  model: string | null,
  options: ConversationOptions | null,
) {
  await stopPendingCalls(backend, shown);
  const by = model ?? before.findLast((it) => it.model !== null)?.model ?? null;
  const question = message('user', text, null, files);
  const messages = toWire([...before, question]);
  const { turn } = await backend.call('temporary_send', { messages, model: by, options });
  const started = { turn, conversation: null, assistant_message: turn };
  return { messages: [...before, question, emptyAnswer(turn, by)], started };
}

/** Appends the answer to the tool results, which is being written. */
export const withAnswer = (messages: readonly Message[], turn: string): Message[] => [
  ...messages,
  emptyAnswer(turn, messages.at(-1)?.model ?? null),
];

/** The answer ended in tool calls. Their progress arrives as events, possibly later. */
export const endsInToolCalls = (over: LiveTurn): boolean => over.stats?.finish === 'tool_calls';

/** Stops waiting and running tool calls, before something else is asked or the chat is left. */
export async function stopPendingCalls(
  backend: Backend,
  messages: readonly Message[],
): Promise<void> {
  const message = messages.at(-1)?.id;
  const open = findCall(messages, 'asking') ?? findCall(messages, 'running');
  // They may have ended meanwhile, so errors are ignored.
  if (message && open) await backend.call('tool_stop', { message }).catch(() => undefined);
}

/** Finds the last question up to a message, and what came before it. */
export function questionAt(messages: readonly Message[], id: string): TemporaryQuestion | null {
  const at = messages.findIndex((it) => it.id === id);
  const asked = messages.slice(0, at + 1).findLastIndex((it) => it.role === 'user');
  const question = messages[asked];
  return question
    ? { before: messages.slice(0, asked), question: question.text, files: question.attachments }
    : null;
}

/** Tool calls that ran or were decided; open ones are dropped. */
const finishedCalls = ({ tool_calls }: Message) => tool_calls.filter((call) => call.run);

/** Messages in wire form, without empty answers. */
const toWire = (messages: readonly Message[]) =>
  messages
    .filter((it) => it.text !== '' || finishedCalls(it).length > 0)
    .map((it) => ({
      role: it.role,
      text: it.text,
      ...(it.attachments.length > 0 ? { attachments: it.attachments.map(({ id }) => id) } : {}),
      ...(finishedCalls(it).length > 0 ? { tool_calls: finishedCalls(it) } : {}),
    }));
