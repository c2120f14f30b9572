/** The grammar of answers, where it differs from GitHub's: emphasis, strikethrough, bare addresses, tables. */
import { Tokenizer, type Tokens } from 'marked';
import { bareAddressEnd } from './bare-links';
import { BoundedLexer, MAX_BLOCK_NESTING } from './bounded-lexer';
import { maskFormulaPipes, unmaskPipes } from './table-formulas';

/** A quote's lines that lack their `>`; each is looked at together with all lines behind it. */
const MAX_LAZY_LINES = 500;
/** A heading's text is no longer, so that its underline is not looked for in a whole chapter. */
const MAX_HEADING_CHARS = 2_000;
const UNDERLINE = /\n {0,3}(?:=+|-+)[ \t]*(?:\n|$)/;
/** The second line of a table. */
const DELIMITER_ROW = /^[^\n]*\n[^\n]*[|:]/;
const DELIMITERS = /^(?:\*+|_+|~+)/;

export class ChatTokenizer extends Tokenizer {
  #quoteDepth = 0;

  override blockquote(source: string): Tokens.Blockquote | undefined {
    if (this.#quoteDepth >= MAX_BLOCK_NESTING) return undefined;
    const lines = this.rules.block.blockquote.exec(source)?.[0].split('\n') ?? [];
    if (lines.filter((line) => !/^ {0,3}>/.test(line)).length > MAX_LAZY_LINES)
      throw new RangeError('a quote with too many lazy lines');
    this.#quoteDepth++;
    try {
      return super.blockquote(source);
    } finally {
      this.#quoteDepth--;
    }
  }

  override lheading(source: string): Tokens.Heading | undefined {
    return UNDERLINE.test(source.slice(0, MAX_HEADING_CHARS)) ? super.lheading(source) : undefined;
  }

  override table(source: string): Tokens.Table | undefined {
    if (!DELIMITER_ROW.test(source)) return undefined;
    const masked = maskFormulaPipes(source);
    if (masked === source) return super.table(source);
    const { inlineQueue } = this.lexer;
    const queued = inlineQueue.length;
    const table = super.table(masked);
    if (!table) return undefined;
    for (const it of inlineQueue.slice(queued)) it.src = unmaskPipes(it.src);
    for (const cell of [table.header, ...table.rows].flat()) cell.text = unmaskPipes(cell.text);
    table.raw = unmaskPipes(table.raw);
    return table;
  }

  // The lexer takes any token from these two; literal delimiters come as text.
  override emStrong(source: string, masked: string): Tokens.Em | Tokens.Strong | undefined {
    if (!/^[*_]/.test(source)) return undefined;
    return this.#delimited(source, masked) as Tokens.Em | undefined;
  }

  override del(source: string, masked: string): Tokens.Del | undefined {
    if (!source.startsWith('~')) return undefined;
    return this.#delimited(source, masked) as Tokens.Del | undefined;
  }

  override url(source: string): Tokens.Link | undefined {
    const link = super.url(source);
    const end = link ? bareAddressEnd(link.raw) : 0;
    return link && end < link.raw.length ? super.url(source.slice(0, end)) : link;
  }

  #delimited(source: string, masked: string) {
    const { lexer } = this;
    if (!(lexer instanceof BoundedLexer)) return undefined;
    const at = masked.length - source.length;
    const span = lexer.emphasisAt(at, masked);
    if (span) {
      const raw = source.slice(0, span.end - span.start);
      const text = raw.slice(span.width, -span.width);
      return { type: span.kind, raw, text, tokens: lexer.emphasizedTokens(text, at + span.width) };
    }
    let width = 1;
    const run = DELIMITERS.exec(source)?.[0].length ?? 1;
    while (width < run && !lexer.emphasisAt(at + width, masked)) width++;
    const raw = source.slice(0, width);
    return { type: 'text', raw, text: raw };
  }
}
