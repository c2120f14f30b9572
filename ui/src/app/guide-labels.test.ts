/**
 * The guide names settings, commands, keys and buttons by id. What these are called in each language is written to the
 * crate `guide` from the catalogues here: `make guide` writes, this test compares.
 */
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { SECTIONS } from '../features/settings/sections';
import { SHORTCUTS } from '../shared/shortcuts';
import { catalogue as ar } from '../i18n/ar';
import { catalogue as de } from '../i18n/de';
import { en } from '../i18n/en';
import { catalogue as ja } from '../i18n/ja';
import { LANGUAGES, type Catalogue, type Language, type Message } from '../i18n/types';

const ROOT = join(import.meta.dirname, '../../..');
const GUIDE = join(ROOT, 'docs/guide');

const CATALOGUES: Record<Language, Pick<Catalogue, 'messages' | 'settings'>> = {
  en: { messages: en, settings: {} },
  de,
  ja,
  ar,
};

/** Paths of interface texts that articles name: `{text:chat.find}`. */
function textPaths(): string[] {
  const files = LANGUAGES.flatMap((language) => {
    const folder = join(GUIDE, language);
    return readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
  });
  const found = files.flatMap((text) => [...text.matchAll(/\{text:([\w.-]+)\}/g)]);
  return [...new Set(found.map((it) => it[1] ?? ''))].sort();
}

/** A text without plural forms. */
const plain = (message: Message | undefined): string | undefined =>
  typeof message === 'string' ? message : message?.other;

function lookup(language: Language, path: string): string | undefined {
  const [module = '', name = ''] = path.split('.');
  const modules = CATALOGUES[language].messages as Record<string, Record<string, Message>>;
  return plain(modules[module]?.[name]);
}

function keysIn(language: Language, keys: string): string {
  const word = (name: string) => lookup(language, `format.key_${name}`) ?? name;
  const names: Record<string, string> = {
    Mod: word('ctrl'),
    Shift: word('shift'),
    Space: word('space'),
    Enter: word('enter'),
    Escape: 'Esc',
    Backspace: '⌫',
    ArrowUp: '↑',
    ArrowDown: '↓',
    Plus: '+',
  };
  return keys
    .split('+')
    .map((part) => names[part] ?? part)
    .join('+');
}

function labels(language: Language): string {
  const { settings } = CATALOGUES[language];
  const of = <T>(entries: (readonly [string, T])[]) => Object.fromEntries(entries);
  const all = {
    sections: of(
      SECTIONS.map(
        ({ name, key }) => [key, { name, label: lookup(language, `settings.${key}`) }] as const,
      ),
    ),
    settings: of(
      Object.entries(settings).map(
        ([key, it]) =>
          [key, { label: it.label, ...(it.options && { options: it.options }) }] as const,
      ),
    ),
    commands: of(SHORTCUTS.map(({ id }) => [id, lookup(language, `commands.${id}`)] as const)),
    keys: of(
      SHORTCUTS.flatMap(({ id, keys: [first] }) =>
        first === undefined ? [] : [[id, keysIn(language, first)] as const],
      ),
    ),
    texts: of(textPaths().map((path) => [path, lookup(language, path)] as const)),
  };
  return `${JSON.stringify(all, null, 1)}\n`;
}

it.each(LANGUAGES)('the labels of the guide are those of the interface (%s)', (language) => {
  const path = join(ROOT, `src-tauri/crates/guide/labels/${language}.json`);
  if (process.env.INGLENOOK_WRITE_GUIDE !== undefined) writeFileSync(path, labels(language));
  expect(readFileSync(path, 'utf8'), 'run `make guide`').toBe(labels(language));
});

it('every interface text that an article names exists', () => {
  const missing = LANGUAGES.flatMap((language) =>
    textPaths()
      .filter((path) => lookup(language, path) === undefined)
      .map((path) => `${language}: ${path}`),
  );
  expect(missing).toEqual([]);
});
