/** Ticks of a time axis: at round times, as many as fit. */
import { DAY, monthsLater } from './gantt-dates';

export interface AxisTick {
  readonly at: number;
  readonly label: string;
}

const HOUR = DAY / 24;
const STEPS = [
  ...[1000, 5000, 15_000, 30_000, 60_000, 300_000, 900_000, 1_800_000],
  ...[HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY],
];
const MONTHS = [1, 3, 6, 12, 24, 60, 120, 600, 1200, 6000, 12_000, 24_000];
/** Weeks start on Monday: the epoch was a Thursday. */
const MONDAY = 4 * DAY;

/** Returns at most `most` ticks. `format`: as in d3; empty or unknown: chosen by the step. */
export function axisTicks(from: number, to: number, most: number, format: string): AxisTick[] {
  const span = to - from;
  const step = STEPS.find((it) => span / it <= most);
  const months = MONTHS.find((it) => span / (it * 30 * DAY) <= most) ?? 24_000;
  const times = step === undefined ? monthTicks(from, to, months) : evenTicks(from, to, step);
  const say = labelFormatter(format) ?? ((ms: number) => defaultLabel(ms, step, months, span));
  const all = times.map((at) => ({ at, label: say(at) }));
  // A format coarser than the step repeats labels.
  return all.filter(({ label }, n) => label !== all[n - 1]?.label);
}

function evenTicks(from: number, to: number, step: number): number[] {
  const first = step < 7 * DAY ? 0 : MONDAY;
  const times = [];
  for (let at = first + Math.ceil((from - first) / step) * step; at <= to; at += step)
    times.push(at);
  return times;
}

function monthTicks(from: number, to: number, months: number): number[] {
  const year = new Date(from).getUTCFullYear();
  const start = new Date(0);
  start.setUTCFullYear(Math.floor(year / 1000) * 1000, 0, 1);
  const passed = year * 12 + new Date(from).getUTCMonth() - start.getUTCFullYear() * 12;
  const times = [];
  let n = Math.floor(passed / months) * months;
  for (let at = monthsLater(start.getTime(), n); at <= to; n += months) {
    at = monthsLater(start.getTime(), n);
    if (at >= from && at <= to) times.push(at);
  }
  return times;
}

const two = (n: number): string => String(n).padStart(2, '0');

function defaultLabel(ms: number, step: number | undefined, months: number, span: number): string {
  const iso = new Date(ms).toISOString();
  if (step === undefined) return months >= 12 ? iso.slice(0, 4) : iso.slice(0, 7);
  if (step >= DAY) return iso.slice(0, 10);
  if (span > DAY) return `${iso.slice(5, 10)} ${iso.slice(11, 16)}`;
  return step < 60_000 ? iso.slice(11, 19) : iso.slice(11, 16);
}

const NAMED: Record<string, Intl.DateTimeFormatOptions> = {
  b: { month: 'short' },
  B: { month: 'long' },
  a: { weekday: 'short' },
  A: { weekday: 'long' },
};
const FIGURES: Record<string, (date: Date) => string> = {
  Y: (date) => String(date.getUTCFullYear()),
  y: (date) => two(date.getUTCFullYear() % 100),
  m: (date) => two(date.getUTCMonth() + 1),
  d: (date) => two(date.getUTCDate()),
  e: (date) => String(date.getUTCDate()),
  H: (date) => two(date.getUTCHours()),
  M: (date) => two(date.getUTCMinutes()),
  S: (date) => two(date.getUTCSeconds()),
  '%': () => '%',
};

/** Null: the format uses an unsupported letter. */
function labelFormatter(format: string): ((ms: number) => string) | null {
  const asked = [...format.matchAll(/%-?(.)/g)].map((it) => it[1] ?? '');
  if (asked.length === 0 || asked.some((it) => !(it in NAMED) && !(it in FIGURES))) return null;
  const language = document.documentElement.lang || 'en';
  return (ms) => {
    const date = new Date(ms);
    return format.replace(/%-?(.)/g, (_, letter: string) => {
      const named = NAMED[letter];
      if (!named) return FIGURES[letter]?.(date) ?? '';
      return new Intl.DateTimeFormat(language, { ...named, timeZone: 'UTC' }).format(date);
    });
  };
}
