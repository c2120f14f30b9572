/** Formats numbers, sizes, times and lists in the page's language. */
import { i18n, t } from '../i18n';

const made = new Map<string, Intl.NumberFormat>();

function number(n: number, options: Intl.NumberFormatOptions): string {
  const key = `${i18n.locale} ${JSON.stringify(options)}`;
  let format = made.get(key);
  if (!format) made.set(key, (format = new Intl.NumberFormat(i18n.locale, options)));
  return format.format(n);
}

const fixed = (digits: number) => ({
  minimumFractionDigits: digits,
  maximumFractionDigits: digits,
});
const whole = (n: number): string => number(n, fixed(0));
const one = (n: number): string => number(n, fixed(1));

export const count = whole;

/** Precision that is still meaningful. */
export const rate = (n: number): string => (n < 10 ? one(n) : whole(n));
export const oneDigit = one;

/** Two decimals. */
export const decimal = (n: number): string => number(n, fixed(2));

const UNITS = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'] as const;

/** Decimal units, as on disks and model pages. */
export function bytes(n: number): string {
  const [value, unit] = scaled(n);
  return sized(value, unit);
}

/** `3.1 of 4.7 GB`: the unit only once if both share it. */
export function bytesOf(part: number, all: number): string {
  const [, unit] = scaled(all);
  const [value, own] = scaled(part);
  const done = own === unit ? plain(value, unit) : sized(value, own);
  return t('common.of', { part: done, whole: bytes(all) });
}

type Unit = (typeof UNITS)[number];

function scaled(n: number): [number, Unit] {
  let at = 0;
  let value = n;
  while (value >= 1000 && at < UNITS.length - 1) {
    value /= 1000;
    at++;
  }
  return [value, UNITS[at] ?? 'byte'];
}

const digitsOf = (value: number, unit: Unit) => fixed(unit === 'byte' || value >= 100 ? 0 : 1);
const plain = (value: number, unit: Unit): string => number(value, digitsOf(value, unit));

/** Bytes in full: some languages abbreviate them as a bare `byte`. */
const sized = (value: number, unit: Unit): string =>
  number(value, {
    style: 'unit',
    unit,
    unitDisplay: unit === 'byte' ? 'long' : 'short',
    ...digitsOf(value, unit),
  });

/** 8192 → "8k", 131072 → "128k". */
export function contextLength(n: number): string {
  return n >= 1024 ? `${whole(n / 1024)}k` : whole(n);
}

/** Parameter count as in model names: 7B, 135M. */
export function parameters(n: number): string {
  if (n >= 1e9) return `${n >= 1e11 ? whole(n / 1e9) : one(n / 1e9)}B`;
  if (n >= 1e6) return `${n >= 1e8 ? whole(n / 1e6) : one(n / 1e6)}M`;
  return whole(n);
}

export const speed = (tokensPerSecond: number): string =>
  t('format.speed', { rate: one(tokensPerSecond) });

const time = (
  n: number,
  unit: 'millisecond' | 'second' | 'minute' | 'hour',
  digits = 0,
  unitDisplay: 'narrow' | 'short' = 'narrow',
): string => number(n, { style: 'unit', unit, unitDisplay, ...fixed(digits) });

/** A duration: in milliseconds where tenths of a second would round it away. */
export function seconds(ms: number): string {
  if (ms < 99.5) return time(Math.max(1, ms), 'millisecond');
  return time(ms / 1000, 'second', ms < 9_950 ? 2 : 0);
}

/** A measured time in milliseconds, with meaningful precision. */
export function millis(ms: number): string {
  if (ms >= 999.5) return seconds(ms);
  return time(ms, 'millisecond', ms < 1 ? 3 : ms < 99.95 ? 1 : 0);
}

export const percent = (fraction: number): string =>
  number(fraction, { style: 'percent', ...fixed(0) });

/** 1234 → "1.2K", for lists. */
export const many = (n: number): string =>
  number(n, { notation: 'compact', maximumSignificantDigits: 2 });

/** Remaining time, rounded coarsely. */
export function duration(seconds: number): string {
  if (seconds < 60) return time(Math.max(1, seconds), 'second');
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return time(minutes, 'minute', 0, 'short');
  const hours = time(Math.floor(minutes / 60), 'hour', 0, 'short');
  return minutes % 60 === 0 ? hours : `${hours} ${time(minutes % 60, 'minute', 0, 'short')}`;
}

/** Marks an estimate. */
export const about = (text: string, isAbout: boolean | undefined): string =>
  isAbout ? t('common.about_n', { text }) : text;

/** Joins items as a list in the page's language. */
export const joinList = (parts: readonly string[]): string =>
  new Intl.ListFormat(i18n.locale, { type: 'unit', style: 'long' }).format(parts);

/** Name of a language by its code of two letters; undefined if the code is none. */
export const languageName = (code: string): string | undefined =>
  new Intl.DisplayNames(i18n.locale, { type: 'language', fallback: 'none' }).of(code);

export const date = (ms: number): string =>
  new Intl.DateTimeFormat(i18n.locale, { dateStyle: 'medium' }).format(ms);

export const dateTime = (ms: number): string =>
  new Intl.DateTimeFormat(i18n.locale, { dateStyle: 'medium', timeStyle: 'short' }).format(ms);

/** Time of the day, to the second. */
export const timeOfDay = (ms: number): string =>
  new Intl.DateTimeFormat(i18n.locale, { timeStyle: 'medium' }).format(ms);

const MAX_TITLE_CHARS = 40;

/** Truncates a title for use in a sentence. */
export const truncate = (title: string): string =>
  title.length > MAX_TITLE_CHARS ? `${title.slice(0, MAX_TITLE_CHARS - 1)}…` : title;
