/** Typesets formulas as MathML, which the browser renders. Loaded with the first formula. */
import katex from 'katex';

/** Longer sources are no formulas, and expensive. */
const MAX_CHARS = 4_000;
/** Limit of macro expansions, against recursive definitions. */
const MAX_EXPANSIONS = 500;
/** Limit of sizes set by a formula, in em. */
const MAX_EM = 30;
/** The source annotation would be read aloud in addition, so it is removed. */
const SOURCE = /<annotation[^]*?<\/annotation>/g;

export function typeset(tex: string, display: boolean): string | null {
  if (tex.length > MAX_CHARS) return null;
  try {
    return katex
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
  } catch {
    return null;
  }
}
