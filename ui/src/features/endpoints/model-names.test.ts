import { expect, it } from 'vitest';
import { namesIn } from './model-names';

it.each([
  ['', []],
  [' gpt-oss-120b ', ['gpt-oss-120b']],
  ['a/b:Q4_0, c,, a/b:Q4_0,', ['a/b:Q4_0', 'c']],
  ['a، b、c', ['a', 'b', 'c']],
])('reads the names in %j', (text, expected) => {
  expect(namesIn(text)).toEqual(expected);
});
