/** Settings of numbers as fields that may stay empty. */
import type { SettingRow } from '../backend/bindings';
import { spoken } from '../i18n';

export interface NumberSetting<K extends string> {
  readonly key: K;
  readonly row: SettingRow;
  readonly min: number;
  readonly max: number;
  readonly step: number;
  /** What holds where nothing is said. */
  readonly otherwise: string;
}

/** Each has a row among the settings: its name, its range, what holds where nothing is said. */
export function numberSettings<K extends string>(
  keys: readonly K[],
  find: (key: string) => SettingRow | undefined,
): NumberSetting<K>[] {
  return keys.flatMap((key) => {
    const found = find(key);
    const row = found && spoken(found);
    if (!row || (row.kind.kind !== 'number' && row.kind.kind !== 'integer')) return [];
    const { min, max } = row.kind;
    const step = row.kind.kind === 'number' ? row.kind.step : 1;
    const absent = row.kind.kind === 'integer' ? (row.kind.absent ?? '') : '';
    const otherwise = typeof row.value === 'number' ? String(row.value) : absent;
    return [{ key, row, min, max, step, otherwise }];
  });
}
