import { Lexer } from 'marked';
import { describe, expect, it } from 'vitest';
import { anchoredRules, isAnchored } from './anchored-rules';

describe('anchored patterns', () => {
  it.each<[RegExp, boolean]>([
    [/^a/, true],
    [/^(?:a|b)/, true],
    [/^a|^b/, true],
    [/^a|b/, false],
    [/^[(|]x/, true],
    [/^\(|b/, false],
    [/a^/, false],
    [/^a/m, false],
    [/^a/g, false],
    [/^(a|^b)|^c/u, true],
  ])('%s: %s', (pattern, expected) => {
    expect(isAnchored(pattern)).toBe(expected);
  });

  const { block, inline } = Lexer.rules;
  const rules = anchoredRules({ other: {} as never, block: block.gfm, inline: inline.breaks });
  const sticky = (all: object) =>
    Object.entries(all)
      .filter(([, rule]) => rule instanceof RegExp && rule.sticky)
      .map(([name]) => name);

  it('are those that look at every paragraph', () => {
    const expected = ['blockquote', 'code', 'fences', 'heading', 'hr', 'html', 'lheading', 'list'];
    expect(sticky(rules.block)).toEqual(
      expect.arrayContaining([...expected, 'def', 'newline', 'paragraph', 'table', 'text']),
    );
    expect(sticky(rules.inline)).toEqual(
      expect.arrayContaining(['autolink', 'br', 'code', 'escape', 'link', 'nolink', 'reflink']),
    );
  });

  it('match at the beginning only, again and again', () => {
    for (let n = 0; n < 3; n++) {
      expect(rules.block.heading.exec('# a\n# b\n')?.[0]).toBe('# a\n');
      expect(rules.block.hr.test('---\n')).toBe(true);
      expect(rules.block.hr.test('a\n---\n')).toBe(false);
      expect('---\n'.replace(rules.block.hr, 'x')).toBe('x');
    }
  });
});
