/** Loss curves as points of a picture. */
import type { TuneStep } from '../../backend/bindings';

export const WIDTH = 480;
export const HEIGHT = 140;
/** Between the curves and the edges. */
const EDGE = 4;
/** Points of a curve: more than the picture has pixels show nothing more. */
const MAX_POINTS = 240;

export interface Curves {
  /** Loss of each step, as `points` of a polyline. */
  readonly train: string;
  /** Loss of the held-out examples. */
  readonly heldOut: string;
  readonly lowest: number;
  readonly highest: number;
}

/** Means of neighbours, so that at most `MAX_POINTS` are left. */
export function thinned(steps: readonly TuneStep[]): { step: number; loss: number }[] {
  const size = Math.max(1, Math.ceil(steps.length / MAX_POINTS));
  const groups = Array.from({ length: Math.ceil(steps.length / size) }, (_, at) =>
    steps.slice(at * size, (at + 1) * size),
  );
  return groups.map((group) => ({
    step: group.at(-1)?.step ?? 0,
    loss: group.reduce((sum, it) => sum + it.loss, 0) / group.length,
  }));
}

/** Curves of a run; null: no step yet. `nSteps` is how many the whole run has, `before` the held-out loss before it. */
export function curves(
  steps: readonly TuneStep[],
  nSteps: number | null,
  before: number | null,
): Curves | null {
  const train = thinned(steps);
  if (train.length === 0) return null;
  const heldOut = steps.flatMap((it) =>
    it.held_out === null ? [] : [{ step: it.step, loss: it.held_out }],
  );
  if (before !== null) heldOut.unshift({ step: 0, loss: before });
  const losses = [...train, ...heldOut].map((it) => it.loss);
  const [lowest, highest] = [Math.min(...losses), Math.max(...losses)];
  const last = Math.max(nSteps ?? 0, train.at(-1)?.step ?? 0, 1);
  const span = Math.max(highest - lowest, 1e-9);
  const place = ({ step, loss }: { step: number; loss: number }) => {
    const x = EDGE + (step / last) * (WIDTH - 2 * EDGE);
    const y = EDGE + ((highest - loss) / span) * (HEIGHT - 2 * EDGE);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  };
  return {
    train: train.map(place).join(' '),
    heldOut: heldOut.map(place).join(' '),
    lowest,
    highest,
  };
}
