import { describe, expect, it } from 'vitest';
import type { TuneStep } from '../../backend/bindings';
import { curves, thinned } from './curve';

const step = (n: number, loss: number, held_out: number | null = null): TuneStep => ({
  step: n,
  loss,
  held_out,
  tok_s: 1,
  seconds: 1,
});

describe('loss curves', () => {
  it('has none without a step', () => {
    expect(curves([], 10, 3)).toBeNull();
  });

  it('spans the whole run from the highest loss to the lowest', () => {
    const shown = curves([step(1, 2), step(2, 1, 1.5)], 4, 3);
    expect(shown).toEqual({
      train: '122.0,70.0 240.0,136.0',
      heldOut: '4.0,4.0 240.0,103.0',
      lowest: 1,
      highest: 3,
    });
  });

  it('takes means of neighbours in long runs', () => {
    const steps = Array.from({ length: 480 }, (_, at) => step(at + 1, at % 2 === 0 ? 1 : 3));
    const points = thinned(steps);
    expect([points.length, points[0], points.at(-1)]).toEqual([
      240,
      { step: 2, loss: 2 },
      { step: 480, loss: 2 },
    ]);
  });
});
