import { expect, it } from 'vitest';
import { NUMBER_AND_CHOICE_ROWS as ROWS } from '../test/fixtures';
import { numberSettings } from './number-settings';

it('number settings are fields that may stay empty', () => {
  const rows = numberSettings(['temperature', 'seed', 'top_p', 'reasoning_effort'], (key) =>
    ROWS.find((it) => it.key === key),
  );
  expect(rows.map((it) => [it.key, it.step, it.otherwise])).toEqual([
    ['temperature', 0.05, '0.7'],
    ['seed', 1, 'a new one'],
  ]);
});
