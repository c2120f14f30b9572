/** Searches settings and panels by their texts and by other words for them, and finds changed rows. */
import type { SettingRow } from '../../backend/bindings';
import { searchForm } from '../../shared/search-form';
import { isDefault } from '../../shared/setting-value';
import { en } from '../../i18n/en';
import { t, type Key } from '../../i18n';
import { groupName, sectionName } from './sections';

type Synonym = keyof typeof en.synonyms;

/** Other words for a row or a panel. English ones are found in every language. */
function synonymsOf(name: string): string[] {
  if (!(name in en.synonyms)) return [];
  const key = name as Synonym;
  return [en.synonyms[key], t(`synonyms.${key}`)];
}

/** Whether every word of a query occurs in one of the texts. */
function hasWords(query: string, texts: readonly string[]): boolean {
  const words = searchForm(query).split(/\s+/).filter(Boolean);
  const text = searchForm(texts.join(' '));
  return words.every((word) => text.includes(word));
}

/** Rows that contain every word of `query`, including section and group names and other words for them. */
export function findRows(rows: readonly SettingRow[], query: string): SettingRow[] {
  return rows.filter((row) => {
    const options = row.kind.kind === 'choice' ? row.kind.options.map((it) => it.label) : [];
    const places = [row.section, row.group, sectionName(row.section), groupName(row.group)];
    const texts = [row.label, row.help, row.key, ...places, ...options];
    return hasWords(query, [...texts, ...synonymsOf(`row_${row.key}`)]);
  });
}

/** What the search finds beside rows. `section` has the panel; null: outside the settings. */
const PLACES = [
  { key: 'chat_options', label: 'chat.options', section: null },
  { key: 'models_page', label: 'settings.models_page', section: null },
  { key: 'tool_servers', label: 'settings.tools', section: 'Tools' },
  { key: 'server', label: 'settings.server', section: 'Local server' },
  { key: 'providers', label: 'settings.providers', section: 'Providers' },
  { key: 'connections', label: 'settings.connections', section: 'Privacy & network' },
  { key: 'shortcuts', label: 'settings.shortcuts', section: 'Shortcuts' },
  { key: 'import', label: 'settings.import', section: 'Data' },
  { key: 'export', label: 'settings.export', section: 'Data' },
  { key: 'backup', label: 'settings.backup', section: 'Data' },
  { key: 'restore', label: 'settings.restore', section: 'Data' },
  { key: 'about', label: 'settings.about', section: 'About' },
] as const satisfies readonly { key: string; label: Key; section: string | null }[];

export type SettingPlace = (typeof PLACES)[number];

export const findPlaces = (query: string): SettingPlace[] =>
  PLACES.filter(({ key, label, section }) =>
    hasWords(query, [
      t(label),
      section === null ? '' : sectionName(section),
      ...synonymsOf(`place_${key}`),
    ]),
  );

/** Rows that the user has changed. */
export const changedRows = (rows: readonly SettingRow[]): SettingRow[] =>
  rows.filter((row) => row.kind.kind !== 'read_only' && !isDefault(row));
