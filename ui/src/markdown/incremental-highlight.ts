/**
 * Highlights growing code piece by piece: each piece once, only the last one again. A piece ends before a line
 * that starts at the margin, so that strings and comments are seldom cut.
 */
import { escapeHtml } from './escape';
import { sanitise } from './sanitise';
import type { Highlight } from './render';

export interface Piece {
  /** Offset of the piece in the code; its key. */
  readonly at: number;
  /** Sanitised HTML. */
  readonly html: string;
}

/** Minimum length of a piece in characters; takes one or two milliseconds to highlight. */
const MIN_PIECE_CHARS = 2_000;
/** Maximum length of a piece in characters; then it ends at a line. */
const MAX_PIECE_CHARS = 6_000;
/** Finished code up to this length is highlighted as a whole. */
const MAX_WHOLE_CHARS = 16_000;
/** A blank line, then text at the margin. */
const SEAM = /\n[ \t]*\n(?=[^\s}\])])/g;

export class IncrementalHighlighter {
  #code = '';
  #language = '';
  #highlight: Highlight | null = null;
  #done: Piece[] = [];
  /** Start of the unfinished rest. */
  #cut = 0;

  update(code: string, language: string, growing: boolean, highlight: Highlight | null): Piece[] {
    const goesOn = code.startsWith(this.#code) && language === this.#language;
    if (!goesOn || highlight !== this.#highlight) this.#reset();
    this.#code = code;
    this.#language = language;
    this.#highlight = highlight;
    if (!growing && code.length <= MAX_WHOLE_CHARS && this.#done.length > 0) return this.#whole();
    for (let end = this.#seam(); end > 0; end = this.#seam()) {
      this.#done = [...this.#done, this.#piece(this.#cut, end)];
      this.#cut = end;
    }
    return [...this.#done, this.#piece(this.#cut, code.length)];
  }

  /** Highlights the whole code, unless the pieces give the same result. */
  #whole(): Piece[] {
    const whole = this.#piece(0, this.#code.length);
    const pieces = [...this.#done, this.#piece(this.#cut, this.#code.length)];
    return pieces.map((it) => it.html).join('') === whole.html ? pieces : [whole];
  }

  /** End of the piece that starts at the cut; 0: not known yet. */
  #seam(): number {
    if (this.#code.length - this.#cut < MIN_PIECE_CHARS) return 0;
    SEAM.lastIndex = this.#cut + MIN_PIECE_CHARS;
    const found = SEAM.exec(this.#code);
    const end = found ? SEAM.lastIndex : 0;
    if (end > 0 && end - this.#cut <= MAX_PIECE_CHARS) return end;
    if (this.#code.length - this.#cut <= MAX_PIECE_CHARS) return 0;
    const line = this.#code.lastIndexOf('\n', this.#cut + MAX_PIECE_CHARS) + 1;
    return line > this.#cut ? line : this.#cut + MAX_PIECE_CHARS;
  }

  #piece(from: number, to: number): Piece {
    const code = this.#code.slice(from, to);
    const coloured = this.#highlight?.(code, this.#language);
    return { at: from, html: coloured ? sanitise(coloured) : escapeHtml(code) };
  }

  #reset(): void {
    this.#done = [];
    this.#cut = 0;
  }
}
