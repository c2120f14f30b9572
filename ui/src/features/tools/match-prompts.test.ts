import { describe, expect, it } from 'vitest';
import { matchPrompts, slashQuery, type OfferedPrompt } from './match-prompts';

const OWN = [
  { name: 'mail', text: 'Write a friendly mail about' },
  { name: 'Résumé', text: 'Summarize' },
];
const prompt = { name: 'review', title: 'Code review', description: 'Of a diff', arguments: [] };
const OFFERED: OfferedPrompt[] = [{ server: 's1', serverName: 'Git', prompt }];

describe('the menu behind a slash', () => {
  it.each([
    ['/', ''],
    ['/mail to', 'mail to'],
    ['/home/me', null],
    ['mail', null],
    ['/mail\nx', null],
  ])('%j asks for %j', (draft, query) => {
    expect(slashQuery(draft)).toBe(query);
  });

  it.each([
    ['', ['mail', 'Résumé', 'Code review']],
    ['friendly mail', ['mail']],
    ['resume', ['Résumé']],
    ['git', ['Code review']],
    ['diff review', ['Code review']],
    ['nothing', []],
  ])('%j finds %j', (query, titles) => {
    expect(matchPrompts(OWN, OFFERED, query).map((it) => it.title)).toEqual(titles);
  });
});
