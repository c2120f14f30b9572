/** What a download says of itself. */
import type { Download } from '../../backend/bindings';
import { bytes, bytesOf, duration, percent } from '../../shared/format';
import { dotted, t, told, toldInLine } from '../../i18n';

const far = ({ bytes: done, total }: Download): string => bytesOf(done, total);

export function statusOf(download: Download): string {
  const { state, speed, eta_s } = download;
  switch (state.state) {
    case 'queued':
      return t('models.queued');
    case 'downloading':
      return dotted([
        far(download),
        speed > 0 ? t('format.per_second', { size: bytes(speed) }) : '',
        eta_s === null ? '' : t('models.left', { time: duration(eta_s) }),
      ]);
    case 'paused':
      return state.reason
        ? t('models.goes_on_after', { far: far(download), why: told(state.reason).message })
        : t('models.paused_at', { far: far(download) });
    case 'waiting_for_network':
      return t('models.lost_at', { far: far(download) });
    case 'verifying':
      return t('models.verifying', { share: percent(state.fraction) });
    case 'failed':
      return toldInLine(state.error);
    case 'done':
      return t('models.in_library');
  }
}

export const fractionOf = ({ bytes: done, total, state }: Download): number => {
  if (state.state === 'verifying') return state.fraction;
  return total > 0 ? Math.min(1, done / total) : 0;
};

export const nameOf = ({ repository, path }: Download): string => {
  const file = path.split('/').at(-1) ?? path;
  return file.replace(/\.gguf$/i, '') || repository;
};
