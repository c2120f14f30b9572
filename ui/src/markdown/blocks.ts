/**
 * Splits a growing Markdown text into top-level blocks. Finished blocks are lexed and rendered once and keep
 * their identity; only the tail is rendered again. However the text arrives in chunks, the final blocks are
 * those of the whole text.
 */
import type { Token, Tokens, TokensList } from 'marked';
import { lengthOf } from './bounded-lexer';
import { languageOf, lex, plainHtml, renderBlock } from './render';

export interface Block {
  /** Offset of the block in the text; its key. */
  readonly at: number;
  readonly source: string;
  /** Sanitised HTML; empty for code. */
  readonly html: string;
  /** A top-level code block, which may be long and grows line by line. */
  readonly code: Code | null;
}

export interface Code {
  readonly text: string;
  /** Language as named, or empty. */
  readonly language: string;
  readonly growing: boolean;
}

/** Further blocks are one plain text: each is sanitised on its own, which takes a millisecond. */
const MAX_BLOCKS = 4_000;

type Links = TokensList['links'];

export class Blocks {
  #text = '';
  /** Text before this offset is finished and in `#finished`. */
  #cut = 0;
  #finished: Block[] = [];
  #links: Links = {};
  /** A new reference definition may affect finished blocks. */
  #stale = false;

  /** Returns the blocks of `text`. `growing`: more may be appended. */
  update(text: string, growing: boolean): Block[] {
    const normal = text.replace(/\r\n?/g, '\n');
    try {
      return this.#update(normal, growing);
    } catch {
      // No text may keep the rest of the conversation from being shown.
      this.reset();
      return [plainBlock(normal, 0)];
    }
  }

  #update(normal: string, growing: boolean): Block[] {
    if (!normal.startsWith(this.#text)) this.reset();
    this.#text = normal;
    const blocks = this.#blocks(normal, growing);
    if (!this.#stale) return blocks;
    this.#stale = false;
    if (!this.#finished.some((block) => block.source.includes('['))) return blocks;
    this.#finished = [];
    this.#cut = 0;
    return this.#blocks(normal, growing);
  }

  /** Drops everything rendered, for example once formulas can be typeset. */
  reset(): void {
    this.#text = '';
    this.#cut = 0;
    this.#finished = [];
    this.#links = {};
  }

  #blocks(text: string, growing: boolean): Block[] {
    if (growing) this.#finish(text);
    const tail = text.slice(this.#cut);
    if (tail.trim() === '') return this.#finished;
    return [...this.#finished, ...this.#render(this.#lex(tail, growing), this.#cut, growing)];
  }

  /**
   * Moves finished blocks out of the tail. Only whole lines count, since half a line may become anything,
   * and the last block may continue.
   */
  #finish(text: string): void {
    const end = text.lastIndexOf('\n') + 1;
    if (end <= this.#cut) return;
    const tokens = this.#lex(text.slice(this.#cut, end), true);
    this.#define(tokens);
    // If the lexer ever drops a character, offsets are wrong: then nothing is finished early.
    if (lengthOf(tokens) !== end - this.#cut) return;
    let last = tokens.length - 1;
    while (last >= 0 && tokens[last]?.type === 'space') last--;
    // A formula within a line belongs to what stands before it, unless it turns out to be one of several lines.
    while (last > 0 && !tokens[last - 1]?.raw.endsWith('\n')) last--;
    if (last <= 0) return;
    const done = tokens.slice(0, last);
    const added = this.#render(done, this.#cut, false);
    if (added.length > 0) this.#finished = [...this.#finished, ...added];
    this.#cut += lengthOf(done);
  }

  #lex(source: string, growing: boolean): TokensList {
    const tokens = lex(source, growing);
    if (!growing) this.#define(tokens);
    return tokens;
  }

  /** Takes reference definitions over. No line of `tokens` may grow, so they are final. */
  #define(tokens: TokensList): void {
    for (const [label, link] of Object.entries(tokens.links)) {
      if (label in this.#links) continue;
      this.#links = { ...this.#links, [label]: link };
      this.#stale = true;
    }
  }

  #render(tokens: readonly Token[], from: number, growing: boolean): Block[] {
    let at = from;
    const blocks: Block[] = [];
    const most = Math.max(0, MAX_BLOCKS - this.#finished.length);
    for (const [index, token] of tokens.entries()) {
      const source = token.raw;
      if (blocks.length >= most) {
        const rest = tokens.slice(index).map((it) => it.raw);
        blocks.push(plainBlock(rest.join(''), at));
        break;
      }
      if (token.type !== 'space' && token.type !== 'def') {
        const grows = growing && index === tokens.length - 1;
        const code = token.type === 'code' ? codeOf(token as Tokens.Code, grows) : null;
        const html = code ? '' : renderBlock(token, source, this.#links);
        if (code || html !== '') blocks.push({ at, source, html, code });
      }
      at += source.length;
    }
    return blocks;
  }
}

const plainBlock = (source: string, at: number): Block => ({
  at,
  source,
  html: plainHtml(source),
  code: null,
});

const codeOf = (token: Tokens.Code, growing: boolean): Code => ({
  text: token.text,
  language: languageOf(token.lang ?? ''),
  growing,
});
