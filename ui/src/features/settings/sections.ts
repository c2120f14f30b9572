/** Sections and groups of the settings page, in display order. */
import type { SettingRow } from '../../backend/bindings';
import type { IconName } from '../../shared/icons';
import { t } from '../../i18n';

/** A section by the application's English name; `key` selects its translation. */
interface Section {
  readonly name: string;
  readonly icon: IconName;
  readonly key: SectionKey | null;
}

export const SECTIONS = [
  { name: 'General', icon: 'gear', key: 'general' },
  { name: 'Appearance', icon: 'look', key: 'appearance' },
  { name: 'Chat', icon: 'chat', key: 'chat' },
  { name: 'Tools', icon: 'tool', key: 'tools' },
  { name: 'Models & storage', icon: 'model', key: 'models' },
  { name: 'Hardware', icon: 'chip', key: 'hardware' },
  { name: 'Context & memory', icon: 'layers', key: 'context' },
  { name: 'Local server', icon: 'server', key: 'server' },
  { name: 'Providers', icon: 'cloud', key: 'providers' },
  { name: 'Privacy & network', icon: 'shield', key: 'privacy' },
  { name: 'Shortcuts', icon: 'command', key: 'shortcuts' },
  { name: 'Data', icon: 'data', key: 'data' },
  { name: 'About', icon: 'flame', key: 'about' },
] as const;

type SectionKey = (typeof SECTIONS)[number]['key'];

export const PANELS = [
  'Tools',
  'Local server',
  'Providers',
  'Privacy & network',
  'Shortcuts',
  'Data',
  'About',
] as const;

/** Translation keys by the application's group names. */
const GROUPS = {
  Display: 'display',
  Writing: 'writing',
  Reading: 'reading',
  Answers: 'answers',
  Thinking: 'thinking',
  Safety: 'safety',
  Files: 'files',
  Models: 'models',
  Tools: 'tools',
  Downloads: 'downloads',
  Hardware: 'hardware',
  GPUs: 'gpus',
  'Long chats': 'long',
  'Context cache': 'context_cache',
  Server: 'server',
  Limits: 'limits',
  Network: 'network',
} as const;

const keyOf = (name: string): SectionKey | null =>
  SECTIONS.find((it) => it.name === name)?.key ?? null;

/** The application's English name of a section by the key of its translation. */
export const sectionKeyName = (key: string): string =>
  SECTIONS.find((it) => it.key === key)?.name ?? key;

export function sectionName(name: string): string {
  const key = keyOf(name);
  return key === null ? name : t(`settings.${key}`);
}

/** Describes a section in one sentence; empty if there is none. */
export function sectionAbout(name: string): string {
  const key = keyOf(name);
  return key === null || key === 'about' ? '' : t(`settings.${key}_about`);
}

/** Translated name of a group, or of a section used as one. */
export function groupName(name: string): string {
  return name in GROUPS
    ? t(`settings.group_${GROUPS[name as keyof typeof GROUPS]}`)
    : sectionName(name);
}

/** Known sections in display order, then those that only rows name. */
export function sectionsOf(
  rows: readonly SettingRow[],
  panels: readonly string[] = PANELS,
): Section[] {
  const named = new Set([...rows.map((row) => row.section), ...panels]);
  const unknown = [...named].filter((name) => !SECTIONS.some((it) => it.name === name));
  const rest = unknown.map((name): Section => ({ name, icon: 'gear', key: null }));
  return [...SECTIONS.filter((it) => named.has(it.name)), ...rest];
}

/** Rows of a section by group, in the application's order. */
export function groupRows(rows: readonly SettingRow[]): { name: string; rows: SettingRow[] }[] {
  const groups = new Map<string, SettingRow[]>();
  for (const row of rows) {
    const list = groups.get(row.group) ?? [];
    list.push(row);
    groups.set(row.group, list);
  }
  return [...groups].map(([name, list]) => ({ name, rows: list }));
}
