/** Texts on their way to the application: half an emoji becomes U+FFFD, since JSON of Rust knows no lone surrogates. */

const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Deepest arguments that are looked into; those of the application have a handful of levels. */
const MAX_DEPTH = 32;

export const wellFormedText = (text: string): string => text.replace(LONE_SURROGATE, '\ufffd');

/** Copies plain data with well-formed texts. Other objects, such as IPC channels, stay as they are. */
export function wellFormed<T>(value: T, depth = 0): T {
  if (typeof value === 'string') return wellFormedText(value) as T;
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => wellFormed(item, depth + 1)) as T;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [wellFormedText(key), wellFormed(item, depth + 1)]),
  ) as T;
}
