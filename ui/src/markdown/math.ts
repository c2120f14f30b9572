/**
 * Tokenizer for formulas between `$…$`, `$$…$$`, `\(…\)` and `\[…\]`. The typesetter is set from outside; until
 * it is loaded, and for invalid formulas, the source is shown.
 */
import type { MarkedExtension, TokenizerAndRendererExtension, Tokens } from 'marked';

/** Returns MathML, or null if the source is no valid formula. */
export type Typeset = (tex: string, display: boolean) => string | null;

/** A display formula on its own lines. It ends at a blank line, so that a stray `$$` swallows nothing. */
const BLOCK =
  /^ {0,3}(?:\$\$((?:(?!\n[ \t]*\n|\$\$)[^])+)\$\$|\\\[((?:(?!\n[ \t]*\n|\\\])[^])+)\\\])[ \t]*(?:\n+|$)/;
/** Opened, but neither closed nor abandoned. */
const OPEN = /^ {0,3}(?:\$\$(?:(?!\n[ \t]*\n|\$\$)[^])*|\\\[(?:(?!\n[ \t]*\n|\\\])[^])*)$/;
/** `$` touches its content, and no digit or letter follows: prices stay prices. */
const INLINE =
  /^(?:\$\$((?:[^$\\]|\\[^])+?)\$\$|\$((?:[^$\\\s]|\\.)(?:(?:[^$\\\n]|\\.)*(?:[^$\\\s]|\\.))?)\$(?![\w$])|\\\(([^]+?)\\\)|\\\[([^]+?)\\\])/;
const MAY_BEGIN = /\$|\\[([]/;

let typeset: Typeset | null = null;

/** Sets the typesetter. */
export function setTypeset(set: Typeset): void {
  typeset = set;
}

/** Whether a text may contain formulas, so that loading the typesetter is worth it. */
export const mayHoldMath = (text: string): boolean => MAY_BEGIN.test(text);

function mathHtml(tex: string, raw: string, display: boolean, escape: (text: string) => string) {
  const html = typeset?.(tex, display);
  if (!html) return `<code class="md-tex">${escape(raw.trim())}</code>`;
  return display
    ? `<span class="md-math-block" tabindex="0">${html}</span>`
    : `<span class="md-math">${html}</span>`;
}

export function mathExtension(escape: (text: string) => string): MarkedExtension {
  const block: TokenizerAndRendererExtension = {
    name: 'mathBlock',
    level: 'block',
    start: (source) => /\n {0,3}(?:\$\$|\\\[)/.exec(source)?.index,
    tokenizer(source) {
      const closed = BLOCK.exec(source);
      if (closed) return { type: 'mathBlock', raw: closed[0], text: closed[1] ?? closed[2] ?? '' };
      const open = OPEN.exec(source);
      if (!open) return undefined;
      return { type: 'paragraph', raw: open[0], text: open[0], tokens: this.lexer.inline(open[0]) };
    },
    renderer: ({ text, raw }: Tokens.Generic) =>
      `<p>${mathHtml(String(text).trim(), raw, true, escape)}</p>`,
  };
  const inline: TokenizerAndRendererExtension = {
    name: 'math',
    level: 'inline',
    start: (source) => MAY_BEGIN.exec(source)?.index,
    tokenizer(source) {
      const found = INLINE.exec(source);
      if (!found) return undefined;
      const [raw, twice, once, round, square] = found;
      const text = twice ?? once ?? round ?? square ?? '';
      return { type: 'math', raw, text, display: twice !== undefined || square !== undefined };
    },
    renderer: ({ text, raw, display }: Tokens.Generic) =>
      mathHtml(String(text).trim(), raw, Boolean(display), escape),
  };
  return { extensions: [block, inline] };
}
