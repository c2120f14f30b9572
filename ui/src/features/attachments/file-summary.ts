/** Describes an attachment in one line. */
import { dotted, t } from '../../i18n';
import type { Attachment } from '../../backend/bindings';
import { about, bytes } from '../../shared/format';

type SummaryFields = Pick<
  Attachment,
  'kind' | 'bytes' | 'whole' | 'tokens' | 'is_about' | 'guessed'
>;

/** Kind, guessed encoding, size and token count of a file, with a note if it is searched instead of included whole. */
export function summarizeFile(file: SummaryFields, searched: string): string {
  const { kind, bytes: size, whole, tokens: n, is_about, guessed } = file;
  const tokens = n === undefined ? '' : about(t('common.tokens', { n }), is_about);
  return dotted([
    t(`files.${kind}`),
    guessed ?? '',
    bytes(size),
    tokens,
    whole === false ? searched : '',
  ]);
}
