import { describe, expect, it } from 'vitest';
import { bytes, contextLength, parameters, percent, seconds, speed } from './format';

function check<T>(name: string, format: (value: T) => string, cases: [T, string][]) {
  describe(name, () => {
    it.each(cases)('%s → %s', (value, expected) => {
      expect(format(value)).toBe(expected);
    });
  });
}

check('bytes', bytes, [
  [0, '0 bytes'],
  [999, '999 bytes'],
  [12_400_000, '12.4 MB'],
  [2_019_377_696, '2.0 GB'],
  [130_500_000_000, '131 GB'],
]);
check('parameters', parameters, [
  [11_300_000, '11.3M'],
  [135_000_000, '135M'],
  [3_212_749_888, '3.2B'],
  [120_000_000_000, '120B'],
]);
check('contextLength', contextLength, [
  [512, '512'],
  [2048, '2k'],
  [131_072, '128k'],
]);
check('speed', speed, [[42.12, '42.1 tok/s']]);
check('percent', percent, [[0.434, '43%']]);
check('seconds', seconds, [
  [0.2, '1ms'],
  [31.4, '31ms'],
  [310, '0.31s'],
  [9_940, '9.94s'],
  [9_960, '10s'],
  [83_000, '83s'],
]);
