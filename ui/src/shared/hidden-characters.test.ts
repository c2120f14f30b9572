import { expect, it } from 'vitest';
import { removeCharacters } from './hidden-characters';

it('removes hidden characters by their names, and nothing else', () => {
  expect(removeCharacters('a\u202Eb\u{E0041}c\u200Dd', ['U+202E', 'U+E0041'])).toBe('abc\u200Dd');
});
