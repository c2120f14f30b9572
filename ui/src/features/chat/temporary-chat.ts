/** Messages of a chat that is kept nowhere: made here, since nobody else has them. */
import type { Backend } from '../../backend/backend';
import type { Attachment, ConversationOptions, Message, TurnStarted } from '../../backend/bindings';
import { callOf } from './tool-calls';
import type { LiveTurn } from './reducer';

/** What such a chat goes by in the window: there is one at most. */
export const TEMPORARY = 'temporary';

let made = 0;

function message(
  role: 'user' | 'assistant',
  text: string,
  model: string | null,
  attachments: readonly Attachment[] = [],
  id = `temporary-${++made}`,
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

/** A question that is to be answered. */
export interface Asking {
  /** What was said so far. */
  readonly before: readonly Message[];
  readonly question: string;
  readonly files: readonly Attachment[];
}

/** An answer goes by the name of its turn, and so do its calls of tools. */
const answerOf = (turn: string, by: string | null): Message =>
  message('assistant', '', by, [], turn);

/** A turn, and the message that it writes. */
export type Begun = Pick<TurnStarted, 'turn' | 'assistant_message'> & {
  conversation: string | null;
};

/**
 * Asks what comes after `before`, instead of all that is shown; the model that answered before answers again if none is
 * named.
 */
export async function ask(
  backend: Backend,
  shown: readonly Message[],
  { before, question: text, files }: Asking,
  model: string | null,
  options: ConversationOptions | null,
) {
  await leaveCalls(backend, shown);
  const by = model ?? before.findLast((it) => it.model !== null)?.model ?? null;
  const question = message('user', text, null, files);
  const messages = told([...before, question]);
  const { turn } = await backend.call('temporary_send', { messages, model: by, options });
  const started = { turn, conversation: null, assistant_message: turn };
  return { messages: [...before, question, answerOf(turn, by)], started };
}

/** With the answer to what tools brought, which is being written. */
export const answered = (messages: readonly Message[], turn: string): Message[] => [
  ...messages,
  answerOf(turn, messages.at(-1)?.model ?? null),
];

/** What becomes of its calls is told, not fetched; it may not have been told yet. */
export const calls = (over: LiveTurn): boolean => over.stats?.finish === 'tool_calls';

/** Something else is said, or nothing more: calls that wait or run are stopped. */
export async function leaveCalls(backend: Backend, messages: readonly Message[]): Promise<void> {
  const message = messages.at(-1)?.id;
  const open = callOf(messages, 'asking') ?? callOf(messages, 'running');
  // They may have ended meanwhile.
  if (message && open) await backend.call('tool_stop', { message }).catch(() => undefined);
}

/** What stands before a message, and the last question up to it. */
export function upTo(messages: readonly Message[], id: string): Asking | null {
  const at = messages.findIndex((it) => it.id === id);
  const asked = messages.slice(0, at + 1).findLastIndex((it) => it.role === 'user');
  const question = messages[asked];
  return question
    ? { before: messages.slice(0, asked), question: question.text, files: question.attachments }
    : null;
}

/** What was called with an end: nobody waits for the rest. */
const called = ({ tool_calls }: Message) => tool_calls.filter((call) => call.run);

/** As a model is shown them: answers that have nothing are left out. */
const told = (messages: readonly Message[]) =>
  messages
    .filter((it) => it.text !== '' || called(it).length > 0)
    .map((it) => ({
      role: it.role,
      text: it.text,
      ...(it.attachments.length > 0 ? { attachments: it.attachments.map(({ id }) => id) } : {}),
      ...(called(it).length > 0 ? { tool_calls: called(it) } : {}),
    }));
