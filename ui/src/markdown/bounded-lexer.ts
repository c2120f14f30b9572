/**
 * The Markdown lexer with limits. Nothing nests deeper than the limits, so no text exhausts the stack. What cannot
 * be lexed becomes a paragraph of plain text; its neighbours stay as they are.
 */
import { Lexer, type MarkedOptions, type Token, type TokensList } from 'marked';
import { anchoredRules } from './anchored-rules';
import { planEmphasis, type EmphasisPlan, type EmphasisSpan } from './emphasis';
import { formulaRanges } from './formulas';

/** Deeper quotes and lists are plain text. Beyond that, indentation leaves no room for words. */
export const MAX_BLOCK_NESTING = 20;
/** Deeper emphasis and links are plain text; each level is scanned again. */
export const MAX_INLINE_NESTING = 20;
/** Longer runs of inline text are plain text: no prose, and some patterns take quadratic time. */
const MAX_INLINE_CHARS = 50_000;

interface InlineFrame {
  readonly source: string;
  plan: EmphasisPlan | null;
  /** Offset of the source in the text of the plan. */
  readonly offset: number;
}

export class BoundedLexer extends Lexer {
  /** The text may go on, so a formula that is open may be closed. */
  readonly isGrowing: boolean;
  /** Blocks around the present one; 1 at the top level. */
  blockDepth = 0;
  readonly #frames: InlineFrame[] = [];
  /** For the text that is lexed next. */
  #inherited: { plan: EmphasisPlan; offset: number } | null = null;

  constructor(options: MarkedOptions, isGrowing: boolean) {
    super(options);
    this.isGrowing = isGrowing;
    const { tokenizer } = this.options;
    if (tokenizer) tokenizer.rules = anchoredRules(tokenizer.rules);
  }

  override lex(source: string): TokensList {
    this.#lexBlocks(source);
    for (const { src, tokens } of this.inlineQueue) this.#lexInline(src, tokens);
    this.inlineQueue = [];
    return this.tokens;
  }

  override blockTokens(source: string, tokens?: Token[], lastParagraphClipped?: boolean): Token[];
  override blockTokens(
    source: string,
    tokens?: TokensList,
    lastParagraphClipped?: boolean,
  ): TokensList;
  override blockTokens(source: string, tokens: Token[] = [], lastParagraphClipped = false) {
    if (this.blockDepth >= MAX_BLOCK_NESTING) {
      tokens.push(paragraphOf(source));
      return tokens;
    }
    this.blockDepth++;
    try {
      return super.blockTokens(source, tokens, lastParagraphClipped);
    } finally {
      this.blockDepth--;
    }
  }

  override inlineTokens(source: string, tokens: Token[] = []): Token[] {
    if (this.#frames.length >= MAX_INLINE_NESTING || source.length > MAX_INLINE_CHARS) {
      this.#inherited = null;
      tokens.push(textOf(source));
      return tokens;
    }
    const inherited = this.#inherited;
    this.#inherited = null;
    this.#frames.push({ source, plan: inherited?.plan ?? null, offset: inherited?.offset ?? 0 });
    try {
      return super.inlineTokens(source, tokens);
    } finally {
      this.#frames.pop();
    }
  }

  /**
   * The emphasis that begins at offset `at` of the text being lexed. `masked`: that text, without what binds tighter
   * than emphasis.
   */
  emphasisAt(at: number, masked: string): EmphasisSpan | undefined {
    const frame = this.#frames.at(-1);
    if (!frame) return undefined;
    frame.plan ??= planEmphasis(masked, formulaRanges(frame.source));
    return frame.plan.get(frame.offset + at);
  }

  /** Lexes the text within an emphasis, from offset `at` on; its own emphasis is known already. */
  emphasizedTokens(text: string, at: number): Token[] {
    const frame = this.#frames.at(-1);
    if (frame?.plan) this.#inherited = { plan: frame.plan, offset: frame.offset + at };
    return this.inlineTokens(text);
  }

  #lexBlocks(source: string): void {
    for (let at = 0; at < source.length; at = lengthOf(this.tokens)) {
      try {
        this.blockTokens(source.slice(at), this.tokens);
        return;
      } catch {
        const rest = source.slice(lengthOf(this.tokens));
        const end = /\n[ \t]*\n/.exec(rest);
        this.tokens.push(paragraphOf(rest.slice(0, end ? end.index + end[0].length : undefined)));
      }
    }
  }

  #lexInline(source: string, tokens: Token[]): void {
    try {
      this.state.inRawBlock = false;
      this.inlineTokens(source, tokens);
    } catch {
      tokens.length = 0;
      tokens.push(textOf(source));
    }
  }
}

const textOf = (source: string): Token => ({
  type: 'text',
  raw: source,
  text: source,
  escaped: false,
});

const paragraphOf = (source: string): Token => ({
  type: 'paragraph',
  raw: source,
  text: source,
  tokens: [textOf(source)],
});

/** Length of the text that `tokens` cover. */
export const lengthOf = (tokens: readonly Token[]): number =>
  tokens.reduce((sum, token) => sum + token.raw.length, 0);
