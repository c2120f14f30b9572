/** Builds SVG as text. All escaping happens here. */
import { escapeHtml } from './escape';

export type Attributes = Readonly<Record<string, string | number>>;

/** Rounds to a hundredth of a pixel, finer than any screen. */
export const rounded = (value: number): number => Math.round(value * 100) / 100;

/** `content` is SVG, not text. */
export function svgElement(name: string, attributes: Attributes, content = ''): string {
  const attributeText = Object.entries(attributes).map(([key, value]) => {
    const valueText = typeof value === 'number' ? String(rounded(value)) : escapeHtml(value);
    return ` ${key}="${valueText}"`;
  });
  return `<${name}${attributeText.join('')}>${content}</${name}>`;
}

export const text = (attributes: Attributes, words: string): string =>
  svgElement('text', attributes, escapeHtml(words));

export function svgDocument(width: number, height: number, style: string, content: string): string {
  const size = { viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}` };
  const attributes = { xmlns: 'http://www.w3.org/2000/svg', ...size, width, height };
  return svgElement('svg', attributes, `<style>${style}</style>${content}`);
}

/** Scripts with square glyphs. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60]|\p{Extended_Pictographic}/u;
/** Average width relative to the font size; errs on the wide side. */
const GLYPH_WIDTH = 0.58;

/** Estimates the width of a text: nothing can be measured here. */
export function widthOf(words: string, size: number): number {
  let width = 0;
  for (const letter of words) width += WIDE.test(letter) ? 1 : GLYPH_WIDTH;
  return width * size;
}

/** Truncates a text to fit `width`. */
export function truncateToWidth(words: string, size: number, width: number): string {
  if (widthOf(words, size) <= width) return words;
  let cut = '';
  for (const letter of words) {
    if (widthOf(`${cut}${letter}…`, size) > width) break;
    cut += letter;
  }
  return `${cut.trimEnd()}…`;
}

/** Distinguishable hues. Mixed with the background, page-coloured text stays readable on them. */
export const HUES = [
  '#c4622d',
  '#3f7cae',
  '#6f8f3c',
  '#d09a2b',
  '#8a5a9e',
  '#2f8f83',
  '#c0506f',
  '#8a7a68',
] as const;

export const mixColour = (colour: string, percent: number): string =>
  `color-mix(in srgb, ${colour} ${percent}%, var(--bg))`;

/** Styles that every drawing shares. */
export const LETTERS = `text { fill: var(--fg); font-family: system-ui, sans-serif; font-size: 13px; }
.title { font-size: 16px; font-weight: 600; }`;
