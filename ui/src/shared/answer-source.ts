/** Where the answers of a model come from, in sentences that say whether messages leave this computer. */
import type { ModelEntry } from '../backend/bindings';
import { t } from '../i18n';

type SourceFields = Pick<ModelEntry, 'remote'> | undefined;

export interface AnswerSource {
  /** The server's name. */
  readonly server: string;
  /** Messages leave this computer. */
  readonly leaves: boolean;
  /** Says where messages go, and whether others on the way can read them. */
  readonly sentence: string;
}

/** The server that answers; null: the model runs in this application. */
export function answerSource(model: SourceFields): AnswerSource | null {
  const remote = model?.remote;
  if (!remote) return null;
  const { endpoint: server, leaves_machine: leaves } = remote;
  const hosts = remote.hosts.join(', ');
  const place = hosts === '' || hosts === server ? server : t('chat.server_at', { server, hosts });
  const words = leaves
    ? t('chat.sent_to', { server: place })
    : t('chat.sent_to_program', { server: place });
  const sentence = remote.is_readable ? `${words} ${t('chat.sent_unencrypted')}` : words;
  return { server, leaves, sentence };
}

/** Invites to a first question. Claims that nothing leaves this computer only where that is so. */
export function invitation(model: SourceFields): string {
  const source = answerSource(model);
  if (source) return `${t('chat.ask')} ${source.sentence}`;
  return model ? t('chat.ask_anything') : t('chat.ask');
}
