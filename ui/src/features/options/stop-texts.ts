/** Stop texts as lines of a field: `\n` stands for a line break and `\\` for a backslash, as in most languages. */

/** One text a line; blank lines are left out, spaces at the ends of a text are kept. */
export function stopTexts(lines: string): string[] {
  const texts = lines.split('\n').filter((line) => line.trim() !== '');
  return texts.map((line) =>
    line.replace(/\\([n\\])/g, (_, letter: string) => (letter === 'n' ? '\n' : '\\')),
  );
}

export const stopLines = (texts: readonly string[]): string =>
  texts.map((text) => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')).join('\n');
