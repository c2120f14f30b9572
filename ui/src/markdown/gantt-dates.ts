/** Parses dates and durations of Gantt charts, as UTC milliseconds. Independent of clock and time zone. */

export const DAY = 86_400_000;

/** Years with four digits. */
const EARLIEST = Date.parse('0001-01-01');
const LATEST = Date.parse('9999-12-31');

/** Format tokens and their patterns. */
const PARTS: Record<string, string> = {
  YYYY: '\\d{4}',
  YY: '\\d{2}',
  MM: '\\d{2}',
  M: '\\d{1,2}',
  DD: '\\d{2}',
  D: '\\d{1,2}',
  HH: '\\d{2}',
  H: '\\d{1,2}',
  mm: '\\d{2}',
  m: '\\d{1,2}',
  ss: '\\d{2}',
  s: '\\d{1,2}',
  SSS: '\\d{3}',
  X: '\\d{1,12}',
  x: '\\d{1,15}',
};
const PART = /YYYY|YY|MM?|DD?|HH?|mm?|SSS|ss?|X|x/g;
const ISO = /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2}))?)?$/;

const ISO_PARTS = ['YYYY', 'MM', 'DD', 'HH', 'mm', 'ss'];

export type ReadDate = (text: string) => number | null;

/** Builds a parser for a date format; null if the format is unsupported. */
export function dateReader(format: string): ReadDate | null {
  if (/[A-Za-z]/.test(format.replace(PART, '').replace(/T/g, ''))) return null;
  const names = format.match(PART) ?? [];
  const pattern = format
    .split(new RegExp(`(${PART.source})`))
    .map((it) => (it in PARTS ? `(${PARTS[it]})` : it.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')));
  const whole = new RegExp(`^${pattern.join('')}$`);
  return (text) => {
    const found = whole.exec(text);
    if (found) return dateOf(names, found);
    const iso = ISO.exec(text);
    return iso && dateOf(ISO_PARTS, iso);
  };
}

/** `found`: the whole match, then the group of each part. */
function dateOf(names: readonly string[], found: readonly string[]): number | null {
  const parts = new Map(names.map((name, at) => [name, found[at + 1]]));
  const part = (...any: string[]): number | undefined => {
    const figures = any.map((it) => parts.get(it)).find((it) => it !== undefined);
    return figures === undefined ? undefined : Number(figures);
  };
  const [ms, seconds] = [part('x'), part('X')];
  if (ms !== undefined) return inRange(ms);
  if (seconds !== undefined) return inRange(seconds * 1000);
  const short = part('YY');
  const year = part('YYYY') ?? (short === undefined ? 2000 : 2000 + short);
  const [month, day] = [part('MM', 'M') ?? 1, part('DD', 'D') ?? 1];
  const [hour, minute] = [part('HH', 'H') ?? 0, part('mm', 'm') ?? 0];
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, part('ss', 's') ?? 0, part('SSS') ?? 0);
  const isReal = date.getUTCMonth() === month - 1 && date.getUTCDate() === day && hour < 24;
  return isReal ? inRange(date.getTime()) : null;
}

export const inRange = (ms: number): number | null => (ms >= EARLIEST && ms <= LATEST ? ms : null);

const UNITS: Record<string, number> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: DAY,
  w: 7 * DAY,
};
const DURATION = /^(\d+(?:\.\d+)?)(ms|[smhdwMy])$/;

/** Adds a duration to `start`; null if it is no duration. */
export function after(start: number, duration: string): number | null {
  const [, figures, unit = ''] = DURATION.exec(duration) ?? [];
  if (figures === undefined) return null;
  const n = Number(figures);
  const ms = UNITS[unit];
  if (ms !== undefined) return inRange(start + n * ms);
  return inRange(monthsLater(start, Math.round(unit === 'y' ? n * 12 : n)));
}

export function monthsLater(ms: number, months: number): number {
  const date = new Date(ms);
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() + months);
  const end = new Date(date);
  end.setUTCMonth(end.getUTCMonth() + 1, 0);
  date.setUTCDate(Math.min(day, end.getUTCDate()));
  return date.getTime();
}
