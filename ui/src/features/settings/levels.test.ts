import { describe, expect, it } from 'vitest';
import { settingRow } from '../../test/fixtures';
import { rowsOfLevel } from './levels';

const ROWS = [
  settingRow({ key: 'theme' }),
  settingRow({ key: 'numa' }),
  settingRow({ key: 'affinity', value: true }),
  settingRow({ key: 'log_level' }),
  settingRow({ key: 'made_up', kind: { kind: 'read_only' }, value: 'x', default: null }),
];

describe('levels', () => {
  it.each([
    ['basic', null, ['theme', 'affinity']],
    ['basic', 'log_level', ['theme', 'affinity', 'log_level']],
    ['advanced', null, ['theme', 'numa', 'affinity', 'log_level', 'made_up']],
  ] as const)('%s with %s shows %j', (level, wanted, keys) => {
    expect(rowsOfLevel(ROWS, level, wanted).map((it) => it.key)).toEqual(keys);
  });
});
