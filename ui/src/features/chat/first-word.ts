/** How long the first word of a draft's answer is expected to take. */
import { duration } from '../../shared/format';

/** What comes sooner is not worth saying. */
const MIN_SHOWN_S = 3;

/** From here on it is rounded to `COARSE_S`. */
const COARSE_FROM_S = 10;
const COARSE_S = 5;

/** Empty: unknown, or soon. */
export function firstWordTime(ms: number | undefined): string {
  const exact = Math.round((ms ?? 0) / 1000);
  if (exact < MIN_SHOWN_S) return '';
  return duration(exact < COARSE_FROM_S ? exact : Math.round(exact / COARSE_S) * COARSE_S);
}
