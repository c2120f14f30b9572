import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const CSS = readFileSync(join(import.meta.dirname, 'tokens.css'), 'utf8');
const SCHEMES = ['light', 'dark'] as const;

/** The colour of a token in a scheme, as 0 to 1 per channel. `css`: where the token is defined. */
function colour(name: string, scheme: (typeof SCHEMES)[number], css = CSS): number[] {
  const found = new RegExp(`--${name}: light-dark\\((#\\w{6}), (#\\w{6})\\)`).exec(css);
  const hex = found?.[scheme === 'light' ? 1 : 2];
  if (hex === undefined) throw new Error(`no token ${name}`);
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
}

/** Relative luminance, as WCAG 2.2 defines it. */
function luminance(channels: readonly number[]): number {
  const [r = 0, g = 0, b = 0] = channels.map((it) =>
    it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: readonly number[], b: readonly number[]): number {
  const [low = 0, high = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

const BACKGROUNDS = ['page', 'side', 'surface', 'sunken', 'tint', 'hover'];
const INKS = ['ink', 'ink-2', 'ink-3', 'accent', 'good', 'warn', 'bad'];
const PAIRS = [
  ...BACKGROUNDS.flatMap((ground) => INKS.map((ink) => [ink, ground] as const)),
  ...['ink', 'ink-2', 'ink-3'].map((ink) => [ink, 'pressed'] as const),
];

describe.each(SCHEMES)('text in the %s theme', (scheme) => {
  it.each(PAIRS)('%s is readable on %s', (ink, ground) => {
    expect(contrast(colour(ink, scheme), colour(ground, scheme))).toBeGreaterThanOrEqual(4.5);
  });
});

/** The rules of each accent color but the first, which is the root's own. */
const ACCENTS = [...CSS.matchAll(/\[data-accent='(\w+)'\] \{([^}]*)\}/g)].map(
  ([, name = '', rules = '']) => [name, rules] as const,
);

it('every accent of the settings but the first has its colors', () => {
  expect(ACCENTS.map(([name]) => name)).toEqual(['blue', 'green', 'violet', 'rose', 'gray']);
});

describe.each([['ember', CSS] as const, ...ACCENTS])('the accent %s', (_, rules) => {
  it.each(SCHEMES)('is readable in the %s theme', (scheme) => {
    const of = (name: string) => colour(name, scheme, rules);
    for (const ground of BACKGROUNDS) {
      expect(contrast(of('accent'), colour(ground, scheme))).toBeGreaterThanOrEqual(4.5);
      expect(contrast(of('accent-strong'), colour(ground, scheme))).toBeGreaterThanOrEqual(4.5);
    }
    for (const ink of ['ink', 'ink-2'])
      expect(contrast(colour(ink, scheme), of('accent-soft'))).toBeGreaterThanOrEqual(4.5);
    for (const ground of ['accent', 'accent-strong'])
      expect(contrast(of('accent-ink'), of(ground))).toBeGreaterThanOrEqual(4.5);
  });
});
