/** A message on its way to the application. */
import type { Backend } from '../../backend/backend';
import type { Attachment, SendArgs, TurnStarted } from '../../backend/bindings';

/** What goes with a message. What a chat has of its own goes with its first one. */
export type Extra = Pick<SendArgs, 'options' | 'compression'> & { files?: readonly Attachment[] };

export function send(
  backend: Backend,
  conversation: string | null,
  message: Extra & { text: string; model: string | null },
): Promise<TurnStarted> {
  const { text, model, files = [], ...own } = message;
  const sent = files.length > 0 ? { attachments: files.map((it) => it.id) } : {};
  const first = conversation === null ? own : {};
  return backend.call('send', { conversation, text, model, ...sent, ...first });
}
