/** Numeric settings as optional fields. */
import type { SettingRow } from '../backend/bindings';
import { localizeSetting } from '../i18n';

export interface NumberSetting<K extends string> {
  readonly key: K;
  readonly row: SettingRow;
  readonly min: number;
  readonly max: number;
  readonly step: number;
  /** Placeholder: the value that applies if the field is empty. */
  readonly otherwise: string;
}

/** Builds fields from the rows of settings: label, range and default. */
export function numberSettings<K extends string>(
  keys: readonly K[],
  find: (key: string) => SettingRow | undefined,
): NumberSetting<K>[] {
  return keys.flatMap((key) => {
    const found = find(key);
    const row = found && localizeSetting(found);
    if (!row || (row.kind.kind !== 'number' && row.kind.kind !== 'integer')) return [];
    const { min, max } = row.kind;
    const step = row.kind.kind === 'number' ? row.kind.step : 1;
    const absent = row.kind.kind === 'integer' ? (row.kind.absent ?? '') : '';
    const otherwise = typeof row.value === 'number' ? String(row.value) : absent;
    return [{ key, row, min, max, step, otherwise }];
  });
}
