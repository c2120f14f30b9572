/** Comparing a setting with its default. */
import type { SettingRow } from '../backend/bindings';

/** Compares the JSON values that rows carry. */
export const isDefault = (row: Pick<SettingRow, 'value' | 'default'>): boolean =>
  JSON.stringify(row.value) === JSON.stringify(row.default);
