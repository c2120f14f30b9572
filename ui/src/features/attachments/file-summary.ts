/** Describes an attachment in one line. */
import { dotted, t } from '../../i18n';
import type { Attachment } from '../../backend/bindings';
import { about, bytes } from '../../shared/format';

type SummaryFields = Pick<
  Attachment,
  'kind' | 'bytes' | 'whole' | 'tokens' | 'is_about' | 'findings'
>;

/** Kind, size and token count of a file, with notes if it is searched or partly unreadable. */
export function summarizeFile(file: SummaryFields, searched: string): string {
  const { kind, bytes: size, whole, tokens: n, is_about } = file;
  const tokens = n === undefined ? '' : about(t('common.tokens', { n }), is_about);
  const isUnreadable = file.findings.some((it) => it.type === 'unreadable');
  return dotted([
    t(`files.${kind}`),
    bytes(size),
    tokens,
    whole === false ? searched : '',
    isUnreadable ? t('files.partly_unreadable') : '',
  ]);
}
