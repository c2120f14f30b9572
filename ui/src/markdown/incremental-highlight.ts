/**
 * Code in pieces that are coloured once each: while it grows, only its last piece is done again. A piece ends
 * where something new begins at the margin, so that strings and comments are seldom cut.
 */
import { escapeHtml } from './escape';
import { sanitise } from './sanitise';
import type { Highlight } from './render';

export interface Piece {
  /** Where it begins in the code: its key. */
  readonly at: number;
  /** Sanitised. */
  readonly html: string;
}

/** A piece is at least so long. Colouring so much takes a millisecond or two. Characters. */
const PIECE = 2_000;
/** A piece without a good place to end ends at a line. */
const LONGEST_PIECE = 6_000;
/** Code up to this is coloured as a whole once it is finished. */
const WHOLE = 16_000;
/** A blank line, then something at the margin. */
const SEAM = /\n[ \t]*\n(?=[^\s}\])])/g;

export class Colouring {
  #code = '';
  #language = '';
  #highlight: Highlight | null = null;
  #done: Piece[] = [];
  /** Where what is not done begins. */
  #cut = 0;

  update(code: string, language: string, growing: boolean, highlight: Highlight | null): Piece[] {
    const goesOn = code.startsWith(this.#code) && language === this.#language;
    if (!goesOn || highlight !== this.#highlight) this.#reset();
    this.#code = code;
    this.#language = language;
    this.#highlight = highlight;
    if (!growing && code.length <= WHOLE && this.#done.length > 0) return this.#whole();
    for (let end = this.#seam(); end > 0; end = this.#seam()) {
      this.#done = [...this.#done, this.#piece(this.#cut, end)];
      this.#cut = end;
    }
    return [...this.#done, this.#piece(this.#cut, code.length)];
  }

  /** As one, unless the pieces were right already. */
  #whole(): Piece[] {
    const whole = this.#piece(0, this.#code.length);
    const pieces = [...this.#done, this.#piece(this.#cut, this.#code.length)];
    return pieces.map((it) => it.html).join('') === whole.html ? pieces : [whole];
  }

  /** Where the piece that begins at the cut ends; 0: not yet. */
  #seam(): number {
    if (this.#code.length - this.#cut < PIECE) return 0;
    SEAM.lastIndex = this.#cut + PIECE;
    const found = SEAM.exec(this.#code);
    const end = found ? SEAM.lastIndex : 0;
    if (end > 0 && end - this.#cut <= LONGEST_PIECE) return end;
    if (this.#code.length - this.#cut <= LONGEST_PIECE) return 0;
    const line = this.#code.lastIndexOf('\n', this.#cut + LONGEST_PIECE) + 1;
    return line > this.#cut ? line : this.#cut + LONGEST_PIECE;
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
