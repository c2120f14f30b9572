/** Numbers as a person reads them. */

const number = (digits: number) =>
  new Intl.NumberFormat('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });

const WHOLE = number(0);
const ONE = number(1);
const TWO = number(2);

export const count = (n: number): string => WHOLE.format(n);

/** Decimal units, as disks and model pages have them. */
export function bytes(n: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  let at = 0;
  let value = n;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at++;
  }
  return `${at === 0 || value >= 100 ? WHOLE.format(value) : ONE.format(value)} ${units[at]}`;
}

/** 8192 → "8k", 131072 → "128k". */
export function contextLength(n: number): string {
  return n >= 1024 ? `${WHOLE.format(n / 1024)}k` : WHOLE.format(n);
}

export function parameters(n: number): string {
  if (n >= 1e9) return `${n >= 1e11 ? WHOLE.format(n / 1e9) : ONE.format(n / 1e9)}B`;
  if (n >= 1e6) return `${n >= 1e8 ? WHOLE.format(n / 1e6) : ONE.format(n / 1e6)}M`;
  return WHOLE.format(n);
}

export const speed = (tokensPerSecond: number): string => `${ONE.format(tokensPerSecond)} tok/s`;

/** A wait: milliseconds where a tenth of a second would round it away. */
export function seconds(ms: number): string {
  if (ms < 99.5) return `${WHOLE.format(Math.max(1, ms))} ms`;
  return ms < 9_950 ? `${TWO.format(ms / 1000)} s` : `${WHOLE.format(ms / 1000)} s`;
}

export const percent = (fraction: number): string => `${WHOLE.format(fraction * 100)} %`;
