/** What is said of a file beside its name. */
import { dotted, t } from '../../i18n';
import type { Attachment } from '../../backend/bindings';
import { about, bytes } from '../../shared/format';

type Facts = Pick<Attachment, 'kind' | 'bytes' | 'whole' | 'tokens' | 'is_about'>;

/** Its kind, size and tokens, and that it is searched instead of given whole. */
export function facts(file: Facts, searched: string): string {
  const { kind, bytes: size, whole, tokens: n, is_about } = file;
  const tokens = n === undefined ? '' : about(t('common.tokens', { n }), is_about);
  return dotted([t(`files.${kind}`), bytes(size), tokens, whole === false ? searched : '']);
}
