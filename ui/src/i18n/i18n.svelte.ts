/**
 * The page's words in the language that was chosen.
 *
 *     t('common.close')                     a text: typed, a key that isn't there does not compile
 *     t('models.count', { n: 3 })           with parameters, typed as well; `n` chooses the plural
 *
 * New words: a line in `en/<room>.ts`, the same key in `de`, `ja` and `ar`; `{name}` is a parameter, and a message
 * that counts is `{ one: '{n} model', other: '{n} models' }` with as many forms as the language has. Call `t` where
 * it is shown (a template, a `$derived`), never at the top of a module: the language changes while the page runs.
 * Names and paths between words of ours: `dir="auto"` or `<bdi>`; in a parameter they are isolated already.
 * Figures, sizes, times, lists: `shared/format.ts`. `tests/i18n.test.ts` holds all of this.
 */
import { en } from './en';
import { fill, isRtl, isolated, languageOf, localeOf, type Values } from './format-message';
import { LANGUAGES, type Args, type Catalogue, type Key, type Language } from './types';

const KEY = 'inglenook.language';

/** Fetched when chosen. English is a part of the page: nothing is shown before there are words for it. */
const LATE: Record<Exclude<Language, 'en'>, () => Promise<{ catalogue: Catalogue }>> = {
  de: () => import('./de'),
  ja: () => import('./ja'),
  ar: () => import('./ar'),
};
/** What is looked up: a setting or an error may have no text here. */
type Spoken = Pick<Catalogue, 'messages' | 'settings'> & { errors: Partial<Catalogue['errors']> };
/** The application's own words are English already. */
const ENGLISH: Spoken = { messages: en, settings: {}, errors: {} };

const ofSystem = (): readonly string[] => globalThis.navigator?.languages ?? [];

class I18n {
  language = $state<Language>('en');
  locale = $state(localeOf('en', ofSystem()));
  catalogue = $state.raw<Spoken>(ENGLISH);

  get rtl(): boolean {
    return isRtl(this.language);
  }

  /** As the setting says; what is being shown changes at once. */
  async choose(setting: string): Promise<void> {
    const language = languageOf(setting, ofSystem(), LANGUAGES);
    globalThis.localStorage?.setItem(KEY, setting);
    this.#wanted = language;
    const catalogue = language === 'en' ? ENGLISH : (await LATE[language]()).catalogue;
    if (this.#wanted === language) this.#use(language, catalogue);
  }

  #wanted: Language = 'en';

  #use(language: Language, catalogue: Spoken): void {
    this.language = language;
    this.locale = localeOf(language, ofSystem());
    this.catalogue = catalogue;
    const root = globalThis.document?.documentElement;
    if (!root) return;
    root.lang = language;
    root.dir = isRtl(language) ? 'rtl' : 'ltr';
  }
}

/** One page, one language. */
export const i18n = new I18n();

/** What was chosen last, so that the first paint is right. */
export const storedLanguage = (): string => localStorage.getItem(KEY) ?? 'system';

export function t<K extends Key>(key: K, ...args: Args<K>): string {
  const [values = {}] = args as [Values?];
  return fill(messageOf(key), values, i18n.language, i18n.locale);
}

/** The texts before and after the place of a parameter that is more than text, such as a button. */
export function around<K extends Key>(key: K, name: string, values: Values = {}): [string, string] {
  const text = fill(messageOf(key), values, i18n.language, i18n.locale);
  const [before = '', after = ''] = text.split(`{${name}}`);
  return [before, after];
}

function messageOf(key: Key) {
  const [room, name] = key.split('.') as [keyof typeof en, never];
  return i18n.catalogue.messages[room][name];
}

/** A name, path or figure that stands among words, each kept in its own direction. */
export const isolate = (text: string): string => (i18n.rtl ? isolated(text) : text);

/** Facts in a line. */
export const dotted = (facts: readonly string[]): string =>
  facts.filter(Boolean).map(isolate).join(' · ');
