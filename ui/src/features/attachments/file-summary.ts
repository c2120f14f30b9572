/** Describes an attachment in one line. */
import { dotted, t } from '../../i18n';
import type { Attachment, ScannedPages } from '../../backend/bindings';
import { about, bytes } from '../../shared/format';

type SummaryFields = Pick<
  Attachment,
  'kind' | 'bytes' | 'whole' | 'tokens' | 'is_about' | 'from_project' | 'guessed' | 'findings'
>;

/** Kind, guessed encoding, size and token count of a file, with notes if it is searched or partly unreadable. */
export function summarizeFile(file: SummaryFields, searched: string): string {
  const { kind, bytes: size, whole, tokens: n, is_about, guessed, findings } = file;
  const tokens = n === undefined ? '' : about(t('common.tokens', { n }), is_about);
  const isUnreadable = findings.some((it) => it.type === 'unreadable');
  return dotted([
    t(`files.${kind}`),
    guessed ?? '',
    bytes(size),
    tokens,
    whole === false ? searched : '',
    file.from_project ? t('projects.given') : '',
    isUnreadable ? t('files.partly_unreadable') : '',
  ]);
}

/** Scanned pages of a file: how many are read as images, and how many are not read. */
export function summarizeScanned(scanned: ScannedPages, isHidden: boolean): string {
  const { images: n, left_out } = scanned;
  return dotted([
    isHidden ? t('files.scanned_unseen', { n }) : t('files.scanned', { n }),
    left_out > 0 ? t('files.scanned_left_out', { n: left_out }) : '',
  ]);
}
