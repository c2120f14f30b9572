import { describe, expect, it } from 'vitest';
import { fuzzy, splitByMatch } from './fuzzy';

const best = (query: string, texts: string[]): string | undefined =>
  texts
    .map((text) => ({ text, match: fuzzy(query, text) }))
    .filter((it) => it.match !== null)
    .sort((a, b) => (b.match?.score ?? 0) - (a.match?.score ?? 0))[0]?.text;

describe('fuzzy', () => {
  it.each([
    ['model', 'Choose a model', true],
    ['MODEL', 'Choose a model', true],
    ['choose mod', 'Choose a model', true],
    ['mod choose', 'Choose a model', true],
    ['cam', 'Choose a model', true],
    ['xyz', 'Choose a model', false],
    ['modelx', 'Choose a model', false],
    ['model chat', 'Choose a model', false],
    ['', 'Choose a model', true],
    ['über', 'Überblick', true],
  ])('%s in %s: %s', (query, text, expected) => {
    expect(fuzzy(query, text) !== null).toBe(expected);
  });

  it('puts the beginnings of words first', () => {
    expect(best('set', ['Reset this', 'Settings'])).toBe('Settings');
    expect(best('bread', ['Gingerbread', 'Rye bread, explained slowly'])).toMatch(/^Rye/);
    expect(best('new', ['Renew it all', 'A new folder'])).toBe('A new folder');
  });

  it('says which letters were hit', () => {
    const at = fuzzy('fold', 'New folder')?.at ?? [];
    expect(splitByMatch('New folder', at)).toEqual([
      { text: 'New ', hit: false },
      { text: 'fold', hit: true },
      { text: 'er', hit: false },
    ]);
  });
});
