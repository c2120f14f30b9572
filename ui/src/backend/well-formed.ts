/** Half of a character: a surrogate without its partner. */
const HALF = /\p{Surrogate}/gu;

/** Replaces halves of characters, which no string on the other side can hold, by U+FFFD. Only plain data is changed. */
export function wellFormed<T>(value: T): T {
  if (typeof value === 'string') return value.replace(HALF, '\uFFFD') as T;
  if (Array.isArray(value)) return value.map((entry: unknown) => wellFormed(entry)) as T;
  if (
    typeof value !== 'object' ||
    value === null ||
    Object.getPrototypeOf(value) !== Object.prototype
  )
    return value;
  const entries = Object.entries(value).map(([key, entry]) => [wellFormed(key), wellFormed(entry)]);
  return Object.fromEntries(entries) as T;
}
