import { describe, expect, it } from 'vitest';
import { firstWordTime } from './first-word';

describe('the expected time of a first word', () => {
  it.each([
    [undefined, ''],
    [0, ''],
    [2_400, ''],
    [2_600, '3s'],
    [9_400, '9s'],
    [12_400, '10s'],
    [12_600, '15s'],
    [57_000, '55s'],
    [58_000, '1 min'],
    [200_000, '3 min'],
    [3_720_000, '1 hr 2 min'],
  ])('%s ms → %s', (ms, expected) => {
    expect(firstWordTime(ms)).toBe(expected);
  });
});
