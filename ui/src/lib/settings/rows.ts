/** Rows of settings: their sections, and the finding of one. */
import type { SettingRow } from '../backend/bindings';

/** In the order in which the application lists them. */
export const sectionsOf = (rows: readonly SettingRow[]): string[] => [
  ...new Set(rows.map((row) => row.section)),
];

/** The rows that hold every word of `query`. */
export function findRows(rows: readonly SettingRow[], query: string): SettingRow[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    const options = row.kind.kind === 'choice' ? row.kind.options.map((it) => it.label) : [];
    const text = [row.label, row.help, row.section, row.key, ...options].join(' ').toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** JSON values as the rows carry them. */
export const isDefault = (row: SettingRow): boolean =>
  JSON.stringify(row.value) === JSON.stringify(row.default);
