/** Fills parameters and plurals into a message. Pure. */
import type { Language, Message } from './types';

export type Values = Readonly<Record<string, string | number>>;

/** Right-to-left languages. */
const RTL: readonly Language[] = ['ar'];

export const isRtl = (language: Language): boolean => RTL.includes(language);

/**
 * The locale for `Intl`, with the system's region. Arabic keeps Latin digits, since fields, model names and
 * code beside them have no others.
 */
export function localeOf(language: Language, wanted: readonly string[]): string {
  const locale = wanted.find((it) => it.split('-')[0] === language) ?? language;
  return language === 'ar' && !locale.includes('-u-') ? `${locale}-u-nu-latn` : locale;
}

/** Returns the system's first language that has a catalogue. */
export function languageOf(
  setting: string,
  wanted: readonly string[],
  all: readonly Language[],
): Language {
  const known = (name: string) => all.find((it) => it === name);
  for (const name of setting === 'system' ? wanted : [setting]) {
    const language = known(name.toLowerCase().split('-')[0] ?? '');
    if (language) return language;
  }
  return 'en';
}

/** Isolates the direction of names, paths and numbers from the text around them. */
export const isolated = (text: string): string => `\u2068${text}\u2069`;

const rules = new Map<string, Intl.PluralRules>();
const numbers = new Map<string, Intl.NumberFormat>();

function made<T>(cache: Map<string, T>, locale: string, make: () => T): T {
  const there = cache.get(locale);
  if (there) return there;
  const it = make();
  cache.set(locale, it);
  return it;
}

export function formatMessage(
  message: Message,
  values: Values,
  language: Language,
  locale: string = language,
): string {
  const number = made(numbers, locale, () => new Intl.NumberFormat(locale));
  const text = typeof message === 'string' ? message : form(message, Number(values.n), language);
  return text.replace(/\{(\w+)\}/g, (hole, name: string) => {
    const value = values[name];
    if (value === undefined) return hole;
    if (typeof value === 'number') return number.format(value);
    return isRtl(language) ? isolated(value) : value;
  });
}

function form(message: Exclude<Message, string>, n: number, language: Language): string {
  const rule = made(rules, language, () => new Intl.PluralRules(language));
  return message[rule.select(n)] ?? message.other;
}
