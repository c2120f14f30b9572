/** A text around a passage of it, whose place is known in bytes of UTF-8. */
export interface Marked {
  readonly before: string;
  readonly mark: string;
  readonly after: string;
}

/** `start` is the byte of the whole text that `text` begins with. */
export function marked(
  text: string,
  start: number,
  passage: { start: number; end: number } | null,
): Marked {
  const whole: Marked = { before: text, mark: '', after: '' };
  if (!passage || passage.end <= start) return whole;
  const bytes = new TextEncoder().encode(text);
  const from = Math.max(0, passage.start - start);
  const to = Math.min(bytes.length, passage.end - start);
  if (from >= to) return whole;
  const decode = (a: number, b: number) => new TextDecoder().decode(bytes.subarray(a, b));
  return { before: decode(0, from), mark: decode(from, to), after: decode(to, bytes.length) };
}

/** How many bytes a text has. */
export const byteLength = (text: string): number => new TextEncoder().encode(text).length;
