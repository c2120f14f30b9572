/** Fuzzy matching: all letters in order, word beginnings score higher. */

export interface Match {
  readonly score: number;
  /** Matched positions in the text, ascending. */
  readonly at: readonly number[];
}

const START = 8;
const RUN = 5;
const SINGLE = 1;
/** Penalty for each skipped letter, so that short names win. */
const GAP = 0.05;

/** Matches every word of the query; null if one is missing. */
export function fuzzy(query: string, text: string): Match | null {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.map((word) => matchWord(word, text.toLowerCase()));
  if (found.some((it) => it === null)) return null;
  const all = found as Match[];
  const at = [...new Set(all.flatMap((it) => it.at))].sort((a, b) => a - b);
  return { score: all.reduce((sum, it) => sum + it.score, 0), at };
}

/** Matches the word as a whole, preferably at a word beginning; else letter by letter. */
function matchWord(word: string, text: string): Match | null {
  for (let from = 0, best: Match | null = null; ;) {
    const place = text.indexOf(word, from);
    if (place < 0) return best ?? scattered(word, text);
    const match = matchWhole(word, text, place);
    if (startsWord(text, place)) return match;
    best ??= match;
    from = place + 1;
  }
}

function matchWhole(word: string, text: string, place: number): Match {
  const at = Array.from({ length: word.length }, (_, n) => place + n);
  const start = startsWord(text, place) ? START : 0;
  return { score: word.length * RUN + start - place * GAP - text.length * GAP, at };
}

function scattered(word: string, text: string): Match | null {
  const at: number[] = [];
  let score = 0;
  let from = 0;
  for (const letter of word) {
    const next = nextOf(letter, text, from);
    if (next < 0) return null;
    if (next === from && at.length > 0) score += RUN;
    else score += startsWord(text, next) ? START : SINGLE;
    score -= (next - from) * GAP;
    at.push(next);
    from = next + 1;
  }
  // Letters scattered by chance are no match.
  return score < word.length * 2 ? null : { score: score / 2 - text.length * GAP, at };
}

/** Prefers the letter at a word beginning, else takes its next occurrence. */
function nextOf(letter: string, text: string, from: number): number {
  if (text[from] === letter) return from;
  for (let at = text.indexOf(letter, from); at >= 0; at = text.indexOf(letter, at + 1)) {
    if (startsWord(text, at)) return at;
  }
  return text.indexOf(letter, from);
}

const startsWord = (text: string, at: number): boolean =>
  at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1] ?? '');

/** Splits the text into matched and unmatched pieces. */
export function splitByMatch(
  text: string,
  at: readonly number[],
): { text: string; hit: boolean }[] {
  const hits = new Set(at);
  const out: { text: string; hit: boolean }[] = [];
  for (let place = 0; place < text.length; place++) {
    const hit = hits.has(place);
    const last = out.at(-1);
    if (last?.hit === hit) last.text += text[place] ?? '';
    else out.push({ text: text[place] ?? '', hit });
  }
  return out;
}
