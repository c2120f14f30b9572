import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findForm, searchableText, searchForm } from './search-form';

interface Rule {
  fold: { what: string; text: string; folded: string }[];
  find: { text: string; query: string; found: boolean }[];
}
const path = join(__dirname, '../../../tests/fixtures/search-normalisation.json');
const rule = JSON.parse(readFileSync(path, 'utf8')) as Rule;

const matches = (text: string, query: string) =>
  findForm(searchableText(text), searchForm(query), 100).map(([from, to]) => text.slice(from, to));

describe('the search form', () => {
  it.each(rule.fold)('$what: $text', ({ text, folded }) => {
    expect(searchForm(text)).toBe(folded);
    expect(searchableText(text).form).toBe(folded);
  });

  it.each(rule.find)('$query in $text: $found', ({ text, query, found }) => {
    expect(matches(text, query).length > 0).toBe(found);
  });
});

describe('a match is shown where it is in the text', () => {
  it.each<[string, string, string[]]>([
    ['die Maße, MASSE und Masse', 'masse', ['Maße', 'MASSE', 'Masse']],
    ['Maße', 's', ['ß']],
    ['\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165!', '국', ['\u1100\u116e\u11a8']],
    ['قَالَ مُحَمَّدٌ.', 'محمد', ['مُحَمَّدٌ']],
    ['שָׁלוֹם עוֹלָם', 'שלום', ['שָׁלוֹם']],
    ['Ｉｎｇｌｅ x', 'ingle', ['Ｉｎｇｌｅ']],
    ['the oﬃce', 'office', ['oﬃce']],
    ['the oﬃce', 'f', ['ﬃ']],
    ['soft\u00adware', 'software', ['soft\u00adware']],
    ['İİ i', 'i', ['İ', 'İ', 'i']],
    ['🦊 fox 🦊', '🦊', ['🦊', '🦊']],
    ['cafe\u0301 café', 'café', ['cafe\u0301', 'café']],
    ['aaaa', 'aa', ['aa', 'aa']],
    ['Йод и\u0306од иод', 'йод', ['Йод', 'и\u0306од']],
    ['plain', '', []],
  ])('%s: %s', (text, query, expected) => {
    expect(matches(text, query)).toEqual(expected);
  });

  it('is found in a long text without delay', () => {
    const began = performance.now();
    expect(matches('어떤 문서에서 Maße '.repeat(20_000), '없는')).toEqual([]);
    expect(performance.now() - began).toBeLessThan(3_000);
  });
});
