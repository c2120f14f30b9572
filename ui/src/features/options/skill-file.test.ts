import { expect, it } from 'vitest';
import { isSkillFile, readSkill } from './skill-file';

it.each([
  [
    '---\nname: letter-writer\ndescription: Writes letters.\n---\n\n# Letters\n\nBe polite.\n',
    { name: 'letter-writer', instructions: '# Letters\n\nBe polite.' },
  ],
  ['---\r\nname: "Two words"\r\n---\r\nDo it.\r\n', { name: 'Two words', instructions: 'Do it.' }],
  ['---\nname: plain # a comment\n---\nDo it.', { name: 'plain', instructions: 'Do it.' }],
  ['\uFEFF---\ndescription: none\n---\nDo it.', { name: 'SKILL', instructions: 'Do it.' }],
  ['Only text.\n\n---\n\nMore.', { name: 'SKILL', instructions: 'Only text.\n\n---\n\nMore.' }],
  ['---\nname: empty\n---\n  \n', null],
  ['', null],
])('%j is read', (text, expected) => {
  expect(readSkill(text, 'SKILL.md')).toEqual(expected);
});

it('cuts a long name between characters', () => {
  const long = '😀'.repeat(80);
  expect(readSkill(`---\nname: ${long}\n---\nx`, 'SKILL.md')?.name).toBe('😀'.repeat(60));
});

it('knows Markdown files by their ending', () => {
  expect(['SKILL.md', 'a.MARKDOWN', 'x.json', 'md'].map(isSkillFile)).toEqual([
    true,
    true,
    false,
    false,
  ]);
});
