import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { SettingRow } from '../backend/bindings';
import { catalogue as ar } from './ar';
import { catalogue as de } from './de';
import { en } from './en';
import { formatMessage, languageOf, localeOf } from './format-message';
import { i18n, t } from './i18n.svelte';
import { catalogue as ja } from './ja';
import { errorCause, localizeSetting, localizeError } from './localize';
import {
  ERROR_CODES,
  LANGUAGES,
  type Catalogue,
  type Language,
  type Message,
  type Messages,
} from './types';
import { bytes, percent } from '../shared/format';

const SRC = join(import.meta.dirname, '..');
const CRATES = join(import.meta.dirname, '../../../src-tauri/crates');
const SHELL = join(import.meta.dirname, '../../../src-tauri/src');

const rust = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.rs') && !path.includes('tests/'))
    .map((path) => readFileSync(join(folder, path), 'utf8'));

const RUST = [...rust(CRATES), ...rust(SHELL)];

/** The rows of the Rust table: keys, choices, and whether an empty field has a meaning. */
const SETTINGS = RUST.flatMap((source) => source.split(/\bSetting \{\s*key: (?=")/).slice(1)).map(
  (text) => {
    const row = text.slice(0, text.search(/\n {4}\},/));
    const choices = /choice\(&\[([^]*?)\]\)/.exec(row)?.[1] ?? '';
    return {
      key: /^"(\w+)"/.exec(row)?.[1] ?? '',
      options: [...choices.matchAll(/\("(\w*)",/g)].map((m) => m[1] ?? ''),
      absent: /integer\([^]*?Some\("/.test(row),
    };
  },
);
const ENGLISH = en as unknown as Messages;
const CATALOGUES: readonly [Language, Catalogue][] = [
  ['de', de],
  ['ja', ja],
  ['ar', ar],
];

const formsOf = (message: Message): string[] =>
  typeof message === 'string' ? [message] : Object.values(message);
const holesOf = (message: Message): string[] =>
  [
    ...new Set(
      formsOf(message).flatMap((it) => [...it.matchAll(/\{(\w+)\}/g)].map((m) => m[1] ?? '')),
    ),
  ].sort();
/** `module.message` and the message itself. */
const all = (messages: Messages): [string, Message][] =>
  Object.entries(messages).flatMap(([room, of]) =>
    Object.entries(of as Record<string, Message>).map(([name, message]): [string, Message] => [
      `${room}.${name}`,
      message,
    ]),
  );

describe.each(CATALOGUES)('%s', (language, catalogue) => {
  const theirs = new Map(all(catalogue.messages));

  it('says everything that English says, and nothing else', () => {
    expect([...theirs.keys()].sort()).toEqual(
      all(ENGLISH)
        .map(([key]) => key)
        .sort(),
    );
  });

  it('leaves nothing empty', () => {
    expect([...theirs].filter(([, it]) => formsOf(it).some((text) => text.trim() === ''))).toEqual(
      [],
    );
  });

  it('has the parameters of English', () => {
    for (const [key, message] of all(ENGLISH)) {
      // A form may spell its number out.
      const [holes, own] = [holesOf(message), holesOf(theirs.get(key) ?? '')];
      expect([key, own]).toEqual([key, holes]);
    }
  });

  it('counts with plurals that the language has, and with every one that differs', () => {
    const rules = new Intl.PluralRules(language).resolvedOptions().pluralCategories;
    // `other` also covers equal forms: few and many in sentences without a counted noun.
    const needed = rules.filter((it) => it === 'one' || it === 'two' || it === 'other');
    for (const [key, message] of theirs) {
      if (typeof message === 'string') continue;
      const strangers = Object.keys(message).filter((it) => !rules.some((rule) => rule === it));
      expect([key, strangers]).toEqual([key, []]);
      expect([key, needed.filter((it) => message[it] === undefined)]).toEqual([key, []]);
    }
  });

  it.each(SETTINGS)('has words for the setting $key', ({ key, options, absent }) => {
    const text = catalogue.settings[key];
    expect(text?.label).toBeTruthy();
    expect(text?.help).toBeTruthy();
    // Languages are named in themselves.
    const own = key === 'language' ? ['system'] : options;
    expect(own.filter((it) => !text?.options?.[it])).toEqual([]);
    if (absent) expect(text?.absent).toBeTruthy();
  });

  it('has no words for settings that are not there', () => {
    const known = SETTINGS.map((it) => it.key);
    expect(Object.keys(catalogue.settings).filter((key) => !known.includes(key))).toEqual([]);
  });
});

it('every translated error code exists', () => {
  const sources = [...RUST, readFileSync(join(SRC, 'backend/http.ts'), 'utf8')].join('\n');
  expect(
    ERROR_CODES.filter((code) => !sources.includes(`"${code}"`) && !sources.includes(`'${code}'`)),
  ).toEqual([]);
});

describe('a connection that failed', () => {
  it.each([
    [
      'hub.unreachable',
      "huggingface.co can't be reached: dns error: failed to lookup address information.",
      'huggingface.co can’t be reached.',
      'dns error: failed to lookup address information',
    ],
    [
      'remote.unreachable',
      "192.168.1.20:8642 can't be reached: Connection refused (os error 111).",
      '192.168.1.20:8642 can’t be reached.',
      'Connection refused (os error 111)',
    ],
    [
      'hub.certificate',
      "The connection to huggingface.co can't be trusted: invalid peer certificate: UnknownIssuer.",
      'The connection to huggingface.co can’t be trusted.',
      'invalid peer certificate: UnknownIssuer',
    ],
    ['hub.silent', 'huggingface.co has sent nothing for 30 seconds.', null, ''],
  ])('%s: the headline has no words of the system', (code, message, headline, cause) => {
    const error = { code, message, remedy: 'x' };
    expect(localizeError(error).message).toBe(headline ?? message);
    expect(errorCause(error)).toBe(cause);
  });
});

describe('a message', () => {
  it.each<[Language, number, string]>([
    ['en', 1, '1 model'],
    ['en', 1200, '1,200 models'],
    ['de', 2, '2 Modelle'],
    ['de', 1200, '1.200 Modelle'],
    ['ja', 1, '1 個のモデル'],
    ['ar', 0, 'لا نماذج'],
    ['ar', 1, 'نموذج واحد'],
    ['ar', 2, 'نموذجان'],
    ['ar', 3, '3 نماذج'],
    ['ar', 11, '11 نموذجًا'],
    ['ar', 100, '100 نموذج'],
  ])('in %s counts %i', (language, n, expected) => {
    const messages = CATALOGUES.find(([it]) => it === language)?.[1].messages ?? ENGLISH;
    expect(formatMessage(messages.models.count, { n }, language, localeOf(language, []))).toBe(
      expected,
    );
  });

  it('keeps the direction of what it names where the language runs the other way', () => {
    expect(formatMessage('Pause {name}', { name: 'a.gguf' }, 'de')).toBe('Pause a.gguf');
    expect(formatMessage('إيقاف {name}', { name: 'a.gguf' }, 'ar')).toBe(
      'إيقاف \u2068a.gguf\u2069',
    );
  });

  it('does not read its parameters again', () => {
    expect(formatMessage('{a} {b}', { a: '{b}', b: 'x' }, 'en')).toBe('{b} x');
  });
});

describe('the language', () => {
  it.each([
    ['system', ['de-AT', 'en'], 'de'],
    ['system', ['fr-FR', 'ja-JP'], 'ja'],
    ['system', ['fr-FR'], 'en'],
    ['system', [], 'en'],
    ['ar', ['de-AT'], 'ar'],
    ['tlh', ['de-AT'], 'en'],
  ])('%s on a system with %j is %s', (setting, wanted, expected) => {
    expect(languageOf(setting, wanted, LANGUAGES)).toBe(expected);
  });

  it.each<[Language, string[], string]>([
    ['de', ['de-AT', 'en'], 'de-AT'],
    ['de', ['en'], 'de'],
    ['ar', ['ar-EG'], 'ar-EG-u-nu-latn'],
  ])('%s with %j writes figures as %s', (language, wanted, expected) => {
    expect(localeOf(language, wanted)).toBe(expected);
  });

  it('changes what is said at once, and figures with it', async () => {
    await i18n.choose('de');
    expect([t('common.close'), bytes(4_700_000), percent(0.434)]).toEqual([
      'Schließen',
      '4,7 MB',
      '43\u00a0%',
    ]);
    await i18n.choose('en');
    expect([t('common.close'), bytes(4_700_000), percent(0.434)]).toEqual([
      'Close',
      '4.7 MB',
      '43%',
    ]);
  });

  it('the last choice wins, however late another arrives', async () => {
    await Promise.all([i18n.choose('ja'), i18n.choose('en')]);
    expect(t('common.close')).toBe('Close');
  });

  it('tells settings and errors in its words, and what it does not know in English', async () => {
    const error = { code: 'session.empty', message: 'There is nothing.', remedy: 'Write.' };
    const row = {
      key: 'theme',
      label: 'Theme',
      help: '',
      kind: { kind: 'choice', options: [{ value: 'dark', label: 'Dark' }] },
    } as unknown as SettingRow;
    await i18n.choose('de');
    expect(localizeError(error).remedy).toBe('Schreib zuerst eine Nachricht.');
    expect(localizeError({ ...error, code: 'unheard.of' }).message).toBe('There is nothing.');
    expect(localizeSetting(row)).toMatchObject({
      label: 'Design',
      kind: { options: [{ value: 'dark', label: 'Dunkel' }] },
    });
    expect(localizeSetting({ ...row, key: 'unheard_of' }).label).toBe('Theme');
    const kind = { kind: 'long_text', placeholder: 'For example: Answer briefly.' } as const;
    expect(localizeSetting({ ...row, key: 'instructions', kind }).kind).toEqual({
      kind: 'long_text',
      placeholder: de.settings.instructions?.placeholder,
    });
    await i18n.choose('en');
    expect(localizeError(error)).toBe(error);
  });
});
