/**
 * Tokenizer for formulas. The typesetter is set from outside; until it is loaded, and for invalid formulas, the
 * source is shown.
 */
import type { MarkedExtension, TokenizerAndRendererExtension, Tokens } from 'marked';
import { BoundedLexer } from './bounded-lexer';
import {
  blockFormula,
  formulaStart,
  inlineFormula,
  isOpenBlockFormula,
  MAX_FORMULA_CHARS,
} from './formulas';

/** Returns MathML, or null if the source is no valid formula. */
export type Typeset = (tex: string, display: boolean) => string | null;

/** A display formula on its own lines. */
const OWN_LINE = /\n {0,3}(?:\$\$|\\\[)/g;
/** A display formula that begins at the end of a line. */
const LINE_END = /(?<![\\$])(?:\$\$|\\\[)[ \t]*\n/g;
const BLANK_LINE = /\n[ \t]*\n/;
/** A formula that begins deeper within a paragraph does not end it, so that long texts are not scanned repeatedly. */
const MAX_START_CHARS = 8_000;

let typeset: Typeset | null = null;

/** Sets the typesetter. */
export function setTypeset(set: Typeset): void {
  typeset = set;
}

function mathHtml(tex: string, raw: string, display: boolean, escape: (text: string) => string) {
  const html = typeset?.(tex, display);
  if (!html) return `<code class="md-tex">${escape(raw.trim())}</code>`;
  return display
    ? `<span class="md-math-block" tabindex="0">${html}</span>`
    : `<span class="md-math">${html}</span>`;
}

/** Only the last block of a growing text may be closed by what follows. */
const mayBeClosed = (lexer: unknown): boolean =>
  lexer instanceof BoundedLexer && lexer.isGrowing && lexer.blockDepth === 1;

const isOpen = (source: string, lexer: unknown): boolean =>
  isOpenBlockFormula(source) && (mayBeClosed(lexer) || !BLANK_LINE.test(source));

/** Offset within `source` at which a display formula ends a paragraph. */
function blockStart(source: string, lexer: unknown): number | undefined {
  const window = source.slice(0, MAX_START_CHARS);
  const blank = BLANK_LINE.exec(window);
  const paragraph = blank ? window.slice(0, blank.index + 1) : window;
  const restAt = (at: number) => source.slice(at, at + MAX_FORMULA_CHARS + 4);
  const isFormulaAt = (at: number) =>
    blockFormula(restAt(at)) !== null || isOpen(restAt(at), lexer);
  const own = [...paragraph.matchAll(OWN_LINE)].find(({ index }) => isFormulaAt(index + 1))?.index;
  for (const { index } of paragraph.matchAll(LINE_END)) {
    if (own !== undefined && index >= own) break;
    const formula = blockFormula(restAt(index));
    const hasBlankLine = formula && BLANK_LINE.test(formula.tex);
    if (hasBlankLine || (mayBeClosed(lexer) && isOpen(restAt(index), lexer))) return index;
  }
  return own;
}

/** Makes formulas part of the grammar. */
export function mathExtension(escape: (text: string) => string): MarkedExtension {
  const block: TokenizerAndRendererExtension = {
    name: 'mathBlock',
    level: 'block',
    start(source) {
      return blockStart(source, this.lexer);
    },
    tokenizer(source) {
      const formula = blockFormula(source);
      if (formula) return { type: 'mathBlock', raw: formula.raw, text: formula.tex };
      if (!isOpen(source, this.lexer)) return undefined;
      return { type: 'paragraph', raw: source, text: source, tokens: this.lexer.inline(source) };
    },
    renderer: ({ text, raw }: Tokens.Generic) =>
      `<p>${mathHtml(String(text).trim(), raw, true, escape)}</p>`,
  };
  const inline: TokenizerAndRendererExtension = {
    name: 'math',
    level: 'inline',
    start: formulaStart,
    tokenizer(source, tokens) {
      const formula = inlineFormula(source, tokens.at(-1)?.raw.at(-1) ?? '');
      if (!formula) return undefined;
      const { raw, tex, isDisplay } = formula;
      return { type: 'math', raw, text: tex, display: isDisplay };
    },
    renderer: ({ text, raw, display }: Tokens.Generic) =>
      mathHtml(String(text).trim(), raw, Boolean(display), escape),
  };
  return { extensions: [block, inline] };
}
