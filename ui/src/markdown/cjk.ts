/** Character classes of the CommonMark CJK-friendly amendments, by Unicode 17. */

/** East Asian width wide, full or half, without emoji; and Hangul. */
const CJK =
  /^(?!\p{Emoji_Presentation})[\p{Script=Hangul}\u1100-\u115f\u20a9\u2329\u232a\u2630-\u2637\u268a-\u268f\u2e80-\u303e\u3041-\u3247\u3250-\ua4cf\ua960-\ua97f\uf900-\ufaff\ufe10-\ufe1f\ufe30-\ufe6f\uff01-\uffee\u{16fe0}-\u{18cff}\u{1aff0}-\u{1b2ff}\u{1d300}-\u{1d376}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]/u;
const PUNCTUATION = /^[\p{P}\p{S}]/u;
const WHITESPACE = /^\s/u;
/** Selects a glyph of the ideograph before it. */
const IDEOGRAPHIC_SELECTOR = /^[\u{e0100}-\u{e01ef}]/u;
/** Selects a form of the character before it, other than as an emoji. */
const VARIATION_SELECTOR = /^[\ufe00-\ufe0e]/u;

/** What stands beside a run of delimiters. An edge of the text counts as white space. */
export interface Neighbour {
  readonly isSpace: boolean;
  readonly isPunctuation: boolean;
  /** Also an ideographic variation selector. */
  readonly isCjk: boolean;
}

const EDGE: Neighbour = { isSpace: true, isPunctuation: false, isCjk: false };

/** The character that ends before offset `at`. */
export function neighbourBefore(text: string, at: number): Neighbour {
  let char = charBefore(text, at);
  if (VARIATION_SELECTOR.test(char)) char = charBefore(text, at - char.length);
  return neighbour(char);
}

/** The character that begins at offset `at`. */
export function neighbourAfter(text: string, at: number): Neighbour {
  const code = text.codePointAt(at);
  return neighbour(code === undefined ? '' : String.fromCodePoint(code));
}

function neighbour(char: string): Neighbour {
  if (char === '') return EDGE;
  return {
    isSpace: WHITESPACE.test(char),
    isPunctuation: PUNCTUATION.test(char),
    isCjk: CJK.test(char) || IDEOGRAPHIC_SELECTOR.test(char),
  };
}

/** Returns the character that ends before offset `at`, or an empty string. */
export function charBefore(text: string, at: number): string {
  if (at <= 0) return '';
  const low = text.charCodeAt(at - 1);
  const isPair = low >= 0xdc00 && low <= 0xdfff && at > 1;
  return isPair ? text.slice(at - 2, at) : text.slice(at - 1, at);
}
