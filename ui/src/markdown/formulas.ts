/** Finds formulas between `$…$`, `$$…$$`, `\(…\)` and `\[…\]`. A price, a variable of a shell and prose are none. */

export interface FormulaSource {
  /** With its delimiters. */
  readonly raw: string;
  readonly tex: string;
  readonly isDisplay: boolean;
}

/** Longer sources are no formulas, and expensive to typeset. */
export const MAX_FORMULA_CHARS = 4_000;

const BLANK_LINE = /\n[ \t]*\n/;
/** What no formula holds: a fence, a heading. */
const OTHER_BLOCK = /\n {0,3}(?:```|~~~|#{1,6} )/;
/** `$` touches its content. */
const DOLLAR = /^\$((?:[^$\\\s]|\\[^])(?:(?:[^$\\]|\\[^])*?(?:[^$\\\s]|\\[^]))?)\$(?!\$)/;
/** Spaces within `$ … $` are allowed around a command of TeX. */
const SPACED_DOLLAR = /^\$[ \t]((?:[^$\\\n]|\\.)*\\[a-zA-Z](?:[^$\\\n]|\\.)*)[ \t]\$(?![\w$])/;
const DOUBLE_DOLLAR = /^\$\$((?:[^$\\]|\\[^]|\$(?!\$))+?)\$\$/;
/** Signs that prose has not. */
const MATH_SIGN = /\\[a-zA-Z]|[\^_={}<>]/;
const VARIABLE = /^[A-Za-z]'*$/;
const SHELL_VARIABLE = /^\{?[A-Za-z]{2}\w*\}?(?:[/:.\s-]|$)/;
/** Cut off in mid-term: the `$` that follows begins something else. */
const CUT_OFF = /[=+\-*/<>,;:(&^_]$/;
const PROSE = /(?:^|\s)[A-Za-z]{2,}(?:\s|$)/;
const MAY_BEGIN = /\$|\\[([]/;
/** The next formula is looked for within this many characters, so that a long text is not scanned again and again. */
const SEARCH_CHARS = 500;

/** Whether a text may contain formulas. */
export const mayHoldFormula = (text: string): boolean => MAY_BEGIN.test(text);

/** Offset up to which `source` surely holds no beginning of a formula; undefined: nowhere. */
export function formulaStart(source: string): number | undefined {
  const at = source.slice(0, SEARCH_CHARS).search(MAY_BEGIN);
  if (at >= 0) return at;
  return source.length > SEARCH_CHARS ? SEARCH_CHARS - 1 : undefined;
}

/** The formula at the start of `source`, within a line of text. `before`: the character before it. */
export function inlineFormula(source: string, before: string): FormulaSource | null {
  if (source.startsWith('\\(')) return bracketed(source, '\\)', false);
  if (source.startsWith('\\[')) return bracketed(source, '\\]', true);
  if (!source.startsWith('$')) return null;
  const window = source.slice(0, MAX_FORMULA_CHARS);
  const twice = DOUBLE_DOLLAR.exec(window);
  if (twice && !BLANK_LINE.test(twice[0]))
    return { raw: twice[0], tex: twice[1] ?? '', isDisplay: true };
  if (source.startsWith('$$')) return null;
  const found = DOLLAR.exec(window) ?? SPACED_DOLLAR.exec(window);
  if (!found) return null;
  const [raw, tex = ''] = found;
  return isFormula(tex, before, source.charAt(raw.length)) ? { raw, tex, isDisplay: false } : null;
}

function bracketed(source: string, close: string, isDisplay: boolean): FormulaSource | null {
  const end = closing(source.slice(0, MAX_FORMULA_CHARS), 2, close);
  if (end < 0) return null;
  const tex = source.slice(2, end);
  if (tex.trim() === '' || BLANK_LINE.test(tex)) return null;
  return { raw: source.slice(0, end + 2), tex, isDisplay };
}

/** Offset of `close` that no backslash escapes; -1: there is none. */
function closing(text: string, from: number, close: string): number {
  for (let at = text.indexOf(close, from); at >= 0; at = text.indexOf(close, at + 1)) {
    let slashes = 0;
    while (text.charAt(at - slashes - 1) === '\\' && at - slashes > from) slashes++;
    if (slashes % 2 === 0) return at;
  }
  return -1;
}

/** Whether what stands between two `$` is meant as a formula. */
function isFormula(tex: string, before: string, after: string): boolean {
  if (/\d/.test(after) || BLANK_LINE.test(tex)) return false;
  const hasSign = MATH_SIGN.test(tex);
  if (!hasSign && PROSE.test(tex)) return false;
  const isTerm = hasSign && !SHELL_VARIABLE.test(tex) && !CUT_OFF.test(tex);
  const isClear = isTerm || VARIABLE.test(tex);
  if (tex.includes('\n')) return isClear && !/\n\s*(?:[-*+>|#]|\d+[.)])\s/.test(tex);
  return isClear || !(/\w/.test(before) || /\w/.test(after));
}

/** The display formula at the start of `source`, on separate lines. */
export function blockFormula(source: string): FormulaSource | null {
  const opened = openedBlock(source);
  if (!opened) return null;
  const { indent, open, close } = opened;
  const from = indent + open.length;
  const window = source.slice(0, indent + MAX_FORMULA_CHARS);
  const end = open === '$$' ? window.indexOf(close, from) : closing(window, from, close);
  if (end < 0) return null;
  const tex = source.slice(from, end);
  if (tex.trim() === '' || OTHER_BLOCK.test(tex)) return null;
  const behind = /^[ \t]*(?:\n+|$|(?=\S))/.exec(source.slice(end + close.length))?.[0] ?? '';
  const isAlone = behind.endsWith('\n') || end + close.length + behind.length === source.length;
  // Text behind a formula without blank lines makes both a paragraph.
  if (BLANK_LINE.test(tex) ? !mayHoldBlankLines(tex, open) : !isAlone) return null;
  return { raw: source.slice(0, end + close.length) + behind, tex, isDisplay: true };
}

/** Whether `source` begins with a display formula that more text may close. */
export function isOpenBlockFormula(source: string): boolean {
  const opened = openedBlock(source);
  if (!opened || source.length > MAX_FORMULA_CHARS) return false;
  const { indent, open, close } = opened;
  const tex = source.slice(indent + open.length);
  const isClosed = open === '$$' ? tex.includes(close) : closing(tex, 0, close) >= 0;
  return (
    !isClosed && !OTHER_BLOCK.test(tex) && (!BLANK_LINE.test(tex) || mayHoldBlankLines(tex, open))
  );
}

function openedBlock(source: string): { indent: number; open: string; close: string } | null {
  const found = /^ {0,3}(\$\$|\\\[)/.exec(source);
  if (!found) return null;
  const open = found[1] ?? '';
  return { indent: found[0].length - open.length, open, close: open === '$$' ? '$$' : '\\]' };
}

/** A stray `$$` in a line must swallow nothing. */
const mayHoldBlankLines = (tex: string, open: string): boolean =>
  open === '$$' ? /^[ \t]*\n/.test(tex) : closing(tex, 0, '\\[') < 0;

/** Ranges of the formulas in a line of text, in order. Code spans hold none. */
export function formulaRanges(text: string): [number, number][] {
  const ranges: [number, number][] = [];
  if (!mayHoldFormula(text)) return ranges;
  for (let at = 0; at < text.length;) {
    const char = text.charAt(at);
    if (char === '`') at = afterCode(text, at);
    else if (char !== '$' && char !== '\\') at++;
    else {
      const formula = inlineFormula(
        text.slice(at, at + MAX_FORMULA_CHARS + 1),
        text.charAt(at - 1),
      );
      if (formula) ranges.push([at, at + formula.raw.length]);
      at += formula?.raw.length ?? skipped(text, at);
    }
  }
  return ranges;
}

/** An escaped character, or a run of `$`, none of which opens a formula. */
function skipped(text: string, at: number): number {
  if (text.charAt(at) === '\\') return 2;
  return text.startsWith('$$', at) ? 2 : 1;
}

function afterCode(text: string, at: number): number {
  const ticks = /^`+/.exec(text.slice(at, at + SEARCH_CHARS))?.[0] ?? '`';
  const rest = new RegExp(`(?<!\`)${ticks}(?!\`)`, 'g');
  rest.lastIndex = at + ticks.length;
  return rest.exec(text) ? rest.lastIndex : at + ticks.length;
}
