import { describe, expect, it } from 'vitest';
import { codeFileName, previewKind } from './code-actions.svelte';

describe('code blocks', () => {
  it.each([
    ['html', '<p>x</p>', 'html'],
    ['HTML', '', 'html'],
    ['svg', '<svg viewBox="0 0 1 1"></svg>', 'svg'],
    ['xml', '<?xml version="1.0"?>\n<!-- a -->\n<svg>', 'svg'],
    ['svg', '<path d="M0 0"/>', null],
    ['xml', '<note/>', null],
    ['js', '<svg>', null],
    ['', '<html>', null],
  ])('%s %s can be previewed as %s', (language, text, expected) => {
    expect(previewKind(language, text)).toBe(expected);
  });

  it.each([
    ['python', 'code.py'],
    ['Rust', 'code.rs'],
    ['json', 'code.json'],
    ['', 'code.txt'],
    ['../../etc/passwd', 'code.txt'],
  ])('code in %j is saved as %s', (language, expected) => {
    expect(codeFileName(language)).toBe(expected);
  });
});
