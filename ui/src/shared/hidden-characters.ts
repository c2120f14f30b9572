/** Removes the characters with these names, such as `U+202E`. */
export function removeCharacters(text: string, names: readonly string[]): string {
  const hidden = names.map((name) => Number.parseInt(name.replace('U+', ''), 16));
  return [...text].filter((char) => !hidden.includes(char.codePointAt(0) ?? -1)).join('');
}
