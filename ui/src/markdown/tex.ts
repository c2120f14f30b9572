/** Typesets formulas as MathML, which the browser renders. Loaded with the first formula. */
import katex from 'katex';
import { MAX_FORMULA_CHARS } from './formulas';

/** Deeper groups exhaust the stack of the typesetter. */
const MAX_TEX_NESTING = 60;
/** Deeper MathML takes the browser's layout long. A group of TeX makes a few elements. */
const MAX_MARKUP_NESTING = 250;
/** Limit of macro expansions, against recursive definitions. */
const MAX_EXPANSIONS = 500;
/** Limit of sizes set by a formula, in em. */
const MAX_EM = 30;
/** The source annotation would be read aloud in addition, so it is removed. */
const SOURCE = /<annotation[^]*?<\/annotation>/g;

export function typeset(tex: string, display: boolean): string | null {
  if (tex.length > MAX_FORMULA_CHARS || texNesting(tex) > MAX_TEX_NESTING) return null;
  try {
    const html = katex
      .renderToString(tex, {
        output: 'mathml',
        displayMode: display,
        throwOnError: true,
        strict: 'ignore',
        trust: false,
        maxExpand: MAX_EXPANSIONS,
        maxSize: MAX_EM,
      })
      .replace(SOURCE, '');
    return markupNesting(html) > MAX_MARKUP_NESTING ? null : html;
  } catch {
    return null;
  }
}

const TEX_OPENS = /^(?:\{|\\left|\\begin)$/;
const TEX_CLOSES = /^(?:\}|\\right|\\end)$/;

function texNesting(tex: string): number {
  const signs = tex.matchAll(/\\(?:[a-zA-Z]+|[^])|[{}]/g);
  return nesting(signs, (sign) => (TEX_OPENS.test(sign) ? 1 : TEX_CLOSES.test(sign) ? -1 : 0));
}

const markupNesting = (html: string): number =>
  nesting(html.matchAll(/<\/?[a-z][^>]*>/g), (tag) =>
    tag.startsWith('</') ? -1 : tag.endsWith('/>') ? 0 : 1,
  );

function nesting(signs: Iterable<RegExpExecArray>, step: (sign: string) => number): number {
  let depth = 0;
  let most = 0;
  for (const [sign] of signs) {
    depth = Math.max(0, depth + step(sign));
    most = Math.max(most, depth);
  }
  return most;
}
