/** Parses the text fields of the tool server form. Pure. */

/** Splits a command line into arguments, with quotes and backslash escapes. */
export function splitCommandLine(line: string): string[] {
  const found: string[] = [];
  let word: string | null = null;
  let quote = '';
  for (let at = 0; at < line.length; at++) {
    const sign = line.charAt(at);
    const isEscape = sign === '\\' && quote !== "'" && /["'\\\s]/.test(line.charAt(at + 1));
    if (isEscape) word = (word ?? '') + line.charAt(++at);
    else if (quote !== '' && sign === quote) quote = '';
    else if (quote === '' && (sign === '"' || sign === "'")) {
      quote = sign;
      word ??= '';
    } else if (quote === '' && /\s/.test(sign)) {
      if (word !== null) found.push(word);
      word = null;
    } else word = (word ?? '') + sign;
  }
  if (word !== null) found.push(word);
  return found;
}

/** Parses `NAME=value` or `Name: value` lines; other lines are ignored. */
export function parsePairs(text: string): Record<string, string> {
  const lines = text.split('\n').flatMap((line) => {
    const found = /^\s*([^=:\s]+)\s*[=:]\s*(.*?)\s*$/.exec(line);
    return found?.[1] === undefined ? [] : [[found[1], found[2] ?? ''] as const];
  });
  return Object.fromEntries(lines);
}
