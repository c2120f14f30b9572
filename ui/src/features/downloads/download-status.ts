/** Describes the state of a download. */
import type { Download } from '../../backend/bindings';
import { bytes, bytesOf, duration, percent } from '../../shared/format';
import { dotted, t, localizeError, localizeErrorInline } from '../../i18n';

const progressText = ({ bytes: done, total }: Download): string => bytesOf(done, total);

export function describeDownload(download: Download): string {
  const { state, speed, eta_s } = download;
  switch (state.state) {
    case 'queued':
      return t('models.queued');
    case 'downloading':
      return dotted([
        progressText(download),
        speed > 0 ? t('format.per_second', { size: bytes(speed) }) : '',
        eta_s === null ? '' : t('models.left', { time: duration(eta_s) }),
      ]);
    case 'paused':
      return state.reason
        ? t('models.goes_on_after', {
            far: progressText(download),
            why: localizeError(state.reason).message,
          })
        : t('models.paused_at', { far: progressText(download) });
    case 'waiting_for_network':
      return t('models.lost_at', { far: progressText(download) });
    case 'verifying':
      return t('models.verifying', { share: percent(state.fraction) });
    case 'failed':
      return localizeErrorInline(state.error);
    case 'done':
      return t('models.in_library');
  }
}

export const downloadFraction = ({ bytes: done, total, state }: Download): number => {
  if (state.state === 'verifying') return state.fraction;
  return total > 0 ? Math.min(1, done / total) : 0;
};

export const downloadName = ({ repository, path }: Download): string => {
  const file = path.split('/').at(-1) ?? path;
  return file.replace(/\.gguf$/i, '') || repository;
};
