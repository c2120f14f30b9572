/** Formulas as MathML, which the browser draws itself. Loaded with the first formula, not with the page. */
import katex from 'katex';

/** Longer ones are no formulas, and cost more than they give. */
const MOST_CHARS = 4_000;
/** Macro expansions of one formula: none that defines itself runs on. */
const MOST_EXPANSIONS = 500;
/** Of anything that a formula sizes itself, in em. */
const MOST_EM = 30;
/** The source again, for those who copy; it would double what is read aloud. */
const SOURCE = /<annotation[^]*?<\/annotation>/g;

export function typeset(tex: string, display: boolean): string | null {
  if (tex.length > MOST_CHARS) return null;
  try {
    return katex
      .renderToString(tex, {
        output: 'mathml',
        displayMode: display,
        throwOnError: true,
        strict: 'ignore',
        trust: false,
        maxExpand: MOST_EXPANSIONS,
        maxSize: MOST_EM,
      })
      .replace(SOURCE, '');
  } catch {
    return null;
  }
}
