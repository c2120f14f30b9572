/**
 * Texts of the page in the chosen language.
 *
 *     t('common.close')                     a text: typed, a key that isn't there does not compile
 *     t('models.count', { n: 3 })           with parameters, typed as well; `n` chooses the plural
 *
 * A new text is a line in `en/<module>.ts` and the same key in `de`, `ja` and `ar`. `{name}` is a parameter. A message
 * that counts is `{ one: '{n} model', other: '{n} models' }` with as many forms as the language has. Call `t` where
 * it is shown (a template, a `$derived`), never at the top of a module: the language changes while the page runs.
 * Names and paths between our texts: `dir="auto"` or `<bdi>`; parameters are isolated already.
 * Figures, sizes, times, lists: `shared/format.ts`. `tests/i18n.test.ts` holds all of this.
 */
import { en } from './en';
import {
  formatMessage,
  isRtl,
  isolated,
  languageOf,
  localeOf,
  type Values,
} from './format-message';
import { LANGUAGES, type Args, type Catalogue, type Key, type Language } from './types';

const KEY = 'inglenook.language';

/** Catalogues are loaded when chosen. English is bundled, so that every text exists at first paint. */
const LATE: Record<Exclude<Language, 'en'>, () => Promise<{ catalogue: Catalogue }>> = {
  de: () => import('./de'),
  ja: () => import('./ja'),
  ar: () => import('./ar'),
};
/** Lookups: a setting or an error may have no translation. */
type LoadedCatalogue = Pick<Catalogue, 'messages' | 'settings'> & {
  errors: Partial<Catalogue['errors']>;
};
/** The application's texts are English already. */
const ENGLISH: LoadedCatalogue = { messages: en, settings: {}, errors: {} };

const ofSystem = (): readonly string[] => globalThis.navigator?.languages ?? [];

class I18n {
  language = $state<Language>('en');
  locale = $state(localeOf('en', ofSystem()));
  catalogue = $state.raw<LoadedCatalogue>(ENGLISH);

  get rtl(): boolean {
    return isRtl(this.language);
  }

  /** Sets the language; visible texts change at once. */
  async choose(setting: string): Promise<void> {
    const language = languageOf(setting, ofSystem(), LANGUAGES);
    globalThis.localStorage?.setItem(KEY, setting);
    this.#wanted = language;
    const catalogue = language === 'en' ? ENGLISH : (await LATE[language]()).catalogue;
    if (this.#wanted === language) this.#use(language, catalogue);
  }

  #wanted: Language = 'en';

  #use(language: Language, catalogue: LoadedCatalogue): void {
    this.language = language;
    this.locale = localeOf(language, ofSystem());
    this.catalogue = catalogue;
    const root = globalThis.document?.documentElement;
    if (!root) return;
    root.lang = language;
    root.dir = isRtl(language) ? 'rtl' : 'ltr';
  }
}

/** The one language of the page. */
export const i18n = new I18n();

/** The language chosen last, so that the first paint is right. */
export const storedLanguage = (): string => localStorage.getItem(KEY) ?? 'system';

export function t<K extends Key>(key: K, ...args: Args<K>): string {
  const [values = {}] = args as [Values?];
  return formatMessage(messageOf(key), values, i18n.language, i18n.locale);
}

/** Texts before and after a parameter that is markup, such as a button. */
export function around<K extends Key>(key: K, name: string, values: Values = {}): [string, string] {
  const text = formatMessage(messageOf(key), values, i18n.language, i18n.locale);
  const [before = '', after = ''] = text.split(`{${name}}`);
  return [before, after];
}

function messageOf(key: Key) {
  const [room, name] = key.split('.') as [keyof typeof en, never];
  return i18n.catalogue.messages[room][name];
}

/** Isolates a name, path or number among other text. */
export const isolate = (text: string): string => (i18n.rtl ? isolated(text) : text);

/** Joins facts with middle dots. */
export const dotted = (facts: readonly string[]): string =>
  facts.filter(Boolean).map(isolate).join(' · ');
