/**
 * Where a bare address in running text ends. Chinese, Japanese, Korean and Thai put no space behind one: what follows
 * must not become part of it, least of all of its host.
 */

/** Letters that may stand within an address. */
const WORD = /[\p{L}\p{M}\p{N}]/u;
/** Full-width letters and digits, which browsers read as ASCII. */
const FULL_WIDTH = /[\uff00-\uffef]/;
const LATIN = /[\p{Script=Latin}\p{Script=Inherited}]/u;
/** Scripts that are written on without a space, and Korean, whose particles follow at once. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Bopomofo}\p{Script=Hangul}\p{Script=Yi}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}\u3005-\u3007\u30fc]/u;
/** Behind these an address goes on in any script: `/wiki/中文`, `?q=中文`. */
const JOINS = /[/=\-_#&+~%?@]/;
/** The rest of a host that has labels of another script, up to its domain. */
const FOREIGN_LABELS = /^[^\0-\u007f]+(?:[.-][\p{L}\p{N}-]+)*\.[a-z]{2,}(?:[/:?#]|$)/iu;
const SCHEME = /^[a-z]+:\/\//i;

/** Offset in `address` at which it ends. 0: it is none, as a name of two alphabets passes itself off as another. */
export function bareAddressEnd(address: string): number {
  const scheme = SCHEME.exec(address)?.[0].length ?? 0;
  let isHost = true;
  let before = '';
  let at = 0;
  for (const char of address) {
    if (at >= scheme) {
      if (isHost && /[/?#]/.test(char)) isHost = false;
      const isForeign = char > '\u007f';
      if (isForeign && isHost && isMixed(char, before)) return 0;
      if (isForeign && !goesOn(char, before, isHost ? address.slice(at) : null)) return at;
      before = char;
    }
    at += char.length;
  }
  return address.length;
}

/** Whether an address goes on with `char`, which is not ASCII. `host`: the rest of the address, within the host. */
function goesOn(char: string, before: string, host: string | null): boolean {
  if (!WORD.test(char) || FULL_WIDTH.test(char)) return false;
  if (LATIN.test(char) || before > '\u007f') return true;
  // A label of one script may be a site's name; one of two scripts is a sentence that goes on.
  if (host !== null) return /[.-]/.test(before) && FOREIGN_LABELS.test(host);
  return JOINS.test(before) || !UNSPACED.test(char);
}

/** Whether a label goes on in another alphabet. Letters of scripts without spaces begin a sentence instead. */
const isMixed = (char: string, before: string): boolean =>
  /[a-z0-9]/i.test(before) &&
  /\p{L}/u.test(char) &&
  !FULL_WIDTH.test(char) &&
  !LATIN.test(char) &&
  !UNSPACED.test(char);
