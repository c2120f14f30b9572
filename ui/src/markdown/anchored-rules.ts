/**
 * The patterns of the Markdown lexer, made sticky. All of them begin with `^`, but WebKit looks for a match at every
 * offset of the rest of the text. That makes a long answer quadratic: 5,000 short paragraphs took 4 s.
 */
import type { Tokenizer } from 'marked';

type Rules = Tokenizer['rules'];

/** Matches at the beginning of a text or not at all. */
class AnchoredRegExp extends RegExp {
  override exec(text: string): RegExpExecArray | null {
    this.lastIndex = 0;
    return super.exec(text);
  }
}

/** Whether each alternative of a pattern begins with `^`. */
export function isAnchored({ source, flags }: RegExp): boolean {
  if (/[gmy]/.test(flags)) return false;
  const bare = source
    .replace(/\\[^]/g, '..')
    .replace(/\[[^\]]*\]/g, (set) => '.'.repeat(set.length));
  let depth = 0;
  let isFirst = true;
  for (const char of bare) {
    if (isFirst && char !== '^') return false;
    isFirst = depth === 0 && char === '|';
    if (char === '(') depth++;
    if (char === ')') depth--;
  }
  return !isFirst;
}

const made = new WeakMap<object, object>();

function anchored<T extends object>(rules: T): T {
  const known = made.get(rules);
  if (known) return known as T;
  const entries = Object.entries(rules).map(([name, rule]): [string, unknown] => {
    const canStick = rule instanceof RegExp && isAnchored(rule);
    return [name, canStick ? new AnchoredRegExp(rule.source, `${rule.flags}y`) : rule];
  });
  const all = Object.fromEntries(entries) as T;
  made.set(rules, all);
  return all;
}

/** Returns `rules` with every anchored pattern of blocks and inline text made sticky. */
export function anchoredRules(rules: Rules): Rules {
  return { ...rules, block: anchored(rules.block), inline: anchored(rules.inline) };
}
