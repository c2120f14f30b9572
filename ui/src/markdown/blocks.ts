/**
 * A growing text as top-level blocks. Finished blocks are lexed and rendered once and keep their
 * identity; only what may still change is done again. However the text was cut into pieces, the
 * blocks in the end are those of the whole text.
 */
import type { Token, Tokens, TokensList } from 'marked';
import { languageOf, lex, renderBlock } from './render';

export interface Block {
  /** Where the block begins in the text: its key. */
  readonly at: number;
  readonly source: string;
  /** Sanitised; empty where it is code. */
  readonly html: string;
  /** Code on its own, which may be long and grows by lines. */
  readonly code: Code | null;
}

export interface Code {
  readonly text: string;
  /** As it was named, or ''. */
  readonly language: string;
  readonly growing: boolean;
}

type Links = TokensList['links'];

export class Blocks {
  #text = '';
  /** Text before this offset is finished and lies in `#finished`. */
  #cut = 0;
  #finished: Block[] = [];
  #links: Links = {};
  /** A reference definition came that finished blocks may have waited for. */
  #stale = false;

  /** The blocks of `text`. `growing`: more may be appended. */
  update(text: string, growing: boolean): Block[] {
    const normal = text.replace(/\r\n?/g, '\n');
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

  /** Forgets what was rendered, such as when formulas can be set at last. */
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
    return [...this.#finished, ...this.#render(this.#lex(tail, !growing), this.#cut, growing)];
  }

  /**
   * Moves finished blocks out of the tail. Only whole lines decide, since half a line may turn out to
   * be anything; and the last block of them may go on.
   */
  #finish(text: string): void {
    const end = text.lastIndexOf('\n') + 1;
    if (end <= this.#cut) return;
    const tokens = this.#lex(text.slice(this.#cut, end), true);
    // Should the lexer ever drop a character, offsets would lie: then nothing is finished early.
    if (lengthOf(tokens) !== end - this.#cut) return;
    let last = tokens.length - 1;
    while (last >= 0 && tokens[last]?.type === 'space') last--;
    if (last <= 0) return;
    const done = tokens.slice(0, last);
    const added = this.#render(done, this.#cut, false);
    if (added.length > 0) this.#finished = [...this.#finished, ...added];
    this.#cut += lengthOf(done);
  }

  /** `complete`: no line of `source` can grow, so that its reference definitions hold. */
  #lex(source: string, complete: boolean): Token[] {
    const tokens = lex(source);
    if (!complete) return tokens;
    for (const [label, link] of Object.entries(tokens.links)) {
      if (label in this.#links) continue;
      this.#links = { ...this.#links, [label]: link };
      this.#stale = true;
    }
    return tokens;
  }

  #render(tokens: readonly Token[], from: number, growing: boolean): Block[] {
    let at = from;
    const blocks: Block[] = [];
    tokens.forEach((token, index) => {
      const source = token.raw;
      if (token.type !== 'space' && token.type !== 'def') {
        const grows = growing && index === tokens.length - 1;
        const code = token.type === 'code' ? codeOf(token as Tokens.Code, grows) : null;
        const html = code ? '' : renderBlock(token, source, this.#links);
        if (code || html !== '') blocks.push({ at, source, html, code });
      }
      at += source.length;
    });
    return blocks;
  }
}

const codeOf = (token: Tokens.Code, growing: boolean): Code => ({
  text: token.text,
  language: languageOf(token.lang ?? ''),
  growing,
});

const lengthOf = (tokens: readonly Token[]): number =>
  tokens.reduce((sum, token) => sum + token.raw.length, 0);
