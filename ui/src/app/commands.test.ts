import { describe, expect, it } from 'vitest';
import { lastCode } from './commands';

describe('lastCode', () => {
  it.each<[string[], string | null]>([
    [['no code'], null],
    [['```js\nlet x;\n```\nand\n```\nlast\n\none\n```\nend'], 'last\n\none'],
    [['```\nold\n```', 'nothing here'], 'old'],
    [['~~~\n```\n~~~'], '```'],
    [['```\nopen'], null],
  ])('%j', (list, expected) => {
    expect(lastCode(list)).toBe(expected);
  });
});
