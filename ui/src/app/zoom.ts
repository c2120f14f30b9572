/** Zoom of the window. A browser has its own. */
import type { Inglenook } from './inglenook.svelte';

const STEPS = [50, 67, 80, 90, 100, 110, 125, 150, 175, 200, 250, 300];

/** Returns the next zoom step up (1) or down (-1). */
export function stepFrom(percent: number, direction: 1 | -1): number {
  const next =
    direction > 0 ? STEPS.find((it) => it > percent) : STEPS.findLast((it) => it < percent);
  return next ?? percent;
}

/** Returns false in a browser, which then handles the key itself. */
export function zoom(app: Inglenook, direction: 1 | 0 | -1): boolean {
  if (!app.backend.setZoom) return false;
  const now = app.settings.number('zoom', 100);
  const wanted = direction === 0 ? 100 : stepFrom(now, direction);
  if (wanted !== now) void app.settings.set('zoom', wanted);
  return true;
}
