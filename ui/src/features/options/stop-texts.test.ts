import { describe, expect, it } from 'vitest';
import { stopLines, stopTexts } from './stop-texts';

describe('stop texts', () => {
  it.each([
    ['', []],
    ['END\n\n###', ['END', '###']],
    [' User:', [' User:']],
    [String.raw`\n\n`, ['\n\n']],
    [String.raw`C:\\new`, [String.raw`C:\new`]],
  ])('%j', (lines, texts) => {
    expect(stopTexts(lines)).toEqual(texts);
  });

  it('are written as they are read', () => {
    const texts = ['a', ' b ', '\n', String.raw`\n`, String.raw`\\`];
    expect(stopTexts(stopLines(texts))).toEqual(texts);
  });
});
