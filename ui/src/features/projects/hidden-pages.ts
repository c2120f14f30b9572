/** Says which scanned pages of a project a prompt leaves out. */
import type { HiddenPages } from '../../backend/bindings';
import { t } from '../../i18n';

/** How many, and why. */
export function summarizeHiddenPages({ count: n, reason }: HiddenPages): string {
  return reason === 'no_room'
    ? t('files.scanned_no_room', { n })
    : t('files.scanned_unseen', { n });
}
