/** Names of models as they are typed: separated by commas or line breaks. */
export function namesIn(text: string): string[] {
  const names = text.split(/[,،、\n]/).map((name) => name.trim());
  return [...new Set(names.filter((name) => name !== ''))];
}
