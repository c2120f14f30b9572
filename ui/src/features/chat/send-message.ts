/** Sends a message to the application. */
import type { Backend } from '../../backend/backend';
import type { Attachment, SendArgs, TurnStarted } from '../../backend/bindings';

/** What is sent with a message. Options of a new chat go with its first message. */
export type SendExtras = Pick<SendArgs, 'options' | 'compression' | 'folder'> & {
  files?: readonly Attachment[];
};

export function sendMessage(
  backend: Backend,
  conversation: string | null,
  message: SendExtras & { text: string; model: string | null },
): Promise<TurnStarted> {
  const { text, model, files = [], options, compression, folder } = message;
  const sent = files.length > 0 ? { attachments: files.map((it) => it.id) } : {};
  const first = conversation === null ? { options, compression, folder } : {};
  return backend.call('send', { conversation, text, model, ...sent, ...first });
}
