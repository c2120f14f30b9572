/** Searches setting rows and finds changed ones. */
import type { SettingRow } from '../../backend/bindings';
import { isDefault } from '../../shared/setting-value';
import { groupName, sectionName } from './sections';

/** Rows that contain every word of `query`, including section and group names. */
export function findRows(rows: readonly SettingRow[], query: string): SettingRow[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    const options = row.kind.kind === 'choice' ? row.kind.options.map((it) => it.label) : [];
    const places = [row.section, row.group, sectionName(row.section), groupName(row.group)];
    const text = [row.label, row.help, row.key, ...places, ...options].join(' ').toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** Rows that the user has changed. */
export const changedRows = (rows: readonly SettingRow[]): SettingRow[] =>
  rows.filter((row) => row.kind.kind !== 'read_only' && !isDefault(row));
