/** Rows of settings: the finding of one, and whether it is as it came. */
import type { SettingRow } from '../../backend/bindings';
import { isDefault } from '../../shared/setting-value';
import { groupName, sectionName } from './sections';

/** The rows that hold every word of `query`, in the page's language or by the names of places. */
export function findRows(rows: readonly SettingRow[], query: string): SettingRow[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    const options = row.kind.kind === 'choice' ? row.kind.options.map((it) => it.label) : [];
    const places = [row.section, row.group, sectionName(row.section), groupName(row.group)];
    const text = [row.label, row.help, row.key, ...places, ...options].join(' ').toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** Those that a person has made differ. */
export const changedOf = (rows: readonly SettingRow[]): SettingRow[] =>
  rows.filter((row) => row.kind.kind !== 'read_only' && !isDefault(row));
