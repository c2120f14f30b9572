/** Splits a text around a passage given as a range of UTF-8 bytes. */
export interface SplitText {
  readonly before: string;
  readonly mark: string;
  readonly after: string;
}

/** `start`: byte offset of `text` within the whole file. */
export function splitAtRange(
  text: string,
  start: number,
  passage: { start: number; end: number } | null,
): SplitText {
  const whole: SplitText = { before: text, mark: '', after: '' };
  if (!passage || passage.end <= start) return whole;
  const bytes = new TextEncoder().encode(text);
  const from = Math.max(0, passage.start - start);
  const to = Math.min(bytes.length, passage.end - start);
  if (from >= to) return whole;
  const decode = (a: number, b: number) => new TextDecoder().decode(bytes.subarray(a, b));
  return { before: decode(0, from), mark: decode(from, to), after: decode(to, bytes.length) };
}

/** Length of a text in UTF-8 bytes. */
export const byteLength = (text: string): number => new TextEncoder().encode(text).length;
