/**
 * Pairs the delimiters of emphasis (`*`, `_`) and strikethrough (`~~`) in one pass, by the rules of CommonMark with
 * its CJK-friendly amendments. A single `~` never strikes text out.
 */
import { neighbourAfter, neighbourBefore } from './cjk';

export interface EmphasisSpan {
  readonly kind: 'em' | 'strong' | 'del';
  readonly start: number;
  /** Offset behind the closing delimiter. */
  readonly end: number;
  /** Length of a delimiter. */
  readonly width: number;
}

/** Spans by the offset at which they begin. */
export type EmphasisPlan = ReadonlyMap<number, EmphasisSpan>;

interface DelimiterRun {
  readonly char: string;
  readonly at: number;
  readonly length: number;
  readonly opens: boolean;
  readonly closes: boolean;
  /** Range of the delimiters that are not paired yet: closing takes them from the left, opening from the right. */
  from: number;
  to: number;
}

const RUN = /\*+|_+|~+/g;
/** Strikethrough needs exactly two. */
const STRIKE_WIDTH = 2;

/** `ignored`: ranges in which no delimiter counts, in order. */
export function planEmphasis(
  text: string,
  ignored: readonly (readonly [number, number])[],
): EmphasisPlan {
  const spans = new Map<number, EmphasisSpan>();
  const openers: DelimiterRun[] = [];
  /** By kind of closer: no opener at or before this offset matches. */
  const searchedTo = new Map<string, number>();
  for (const run of delimiterRuns(text, ignored)) {
    if (run.closes) pairCloser(run, openers, searchedTo, spans);
    if (run.opens && run.from < run.to) openers.push(run);
  }
  return spans;
}

function pairCloser(
  closer: DelimiterRun,
  openers: DelimiterRun[],
  searchedTo: Map<string, number>,
  spans: Map<number, EmphasisSpan>,
): void {
  const closerKind = `${closer.char}${closer.opens}${closer.length % 3}`;
  while (closer.from < closer.to) {
    const floor = searchedTo.get(closerKind) ?? -1;
    let index = openers.length - 1;
    while (index >= 0 && (openers[index]?.at ?? 0) > floor && !isPair(openers[index], closer))
      index--;
    const opener = openers[index];
    if (!opener || opener.at <= floor) {
      searchedTo.set(closerKind, openers.at(-1)?.at ?? -1);
      return;
    }
    openers.length = index + 1;
    const width = closer.char === '~' ? STRIKE_WIDTH : isWide(opener) && isWide(closer) ? 2 : 1;
    opener.to -= width;
    closer.from += width;
    const kind = closer.char === '~' ? 'del' : width === 2 ? 'strong' : 'em';
    spans.set(opener.to, { kind, start: opener.to, end: closer.from, width });
    if (opener.from === opener.to) openers.pop();
  }
}

const isWide = ({ from, to }: DelimiterRun): boolean => to - from > 1;

function isPair(opener: DelimiterRun | undefined, closer: DelimiterRun): boolean {
  if (!opener || opener.char !== closer.char) return false;
  if (closer.char === '~' || !(opener.closes || closer.opens)) return true;
  const isThird = (opener.length + closer.length) % 3 === 0;
  return !isThird || (opener.length % 3 === 0 && closer.length % 3 === 0);
}

function* delimiterRuns(
  text: string,
  ignored: readonly (readonly [number, number])[],
): Generator<DelimiterRun> {
  let next = 0;
  for (const { 0: run, index: at } of text.matchAll(RUN)) {
    while (next < ignored.length && (ignored[next]?.[1] ?? 0) <= at) next++;
    const range = ignored[next];
    if (range && range[0] <= at) continue;
    const char = run.charAt(0);
    if (char === '~' && run.length !== STRIKE_WIDTH) continue;
    const before = neighbourBefore(text, at);
    const after = neighbourAfter(text, at + run.length);
    const isLeft =
      !after.isSpace &&
      (!after.isPunctuation ||
        after.isCjk ||
        before.isSpace ||
        before.isPunctuation ||
        before.isCjk);
    const isRight =
      !before.isSpace &&
      (!before.isPunctuation ||
        before.isCjk ||
        after.isSpace ||
        after.isPunctuation ||
        after.isCjk);
    const isWordy = char === '_';
    yield {
      char,
      at,
      length: run.length,
      from: at,
      to: at + run.length,
      opens: isLeft && (!isWordy || !isRight || before.isPunctuation),
      closes: isRight && (!isWordy || !isLeft || after.isPunctuation),
    };
  }
}
