/** Runaway output of a model: one character or pattern a hundred thousand times. Nothing throws, nothing takes long. */
import { describe, expect, it, vi } from 'vitest';
import { Blocks } from './blocks';
import { MAX_BLOCK_NESTING } from './bounded-lexer';
import { typeset } from './tex';

// Sanitising is tested on its own, and slow without a browser.
vi.mock('./sanitise', () => ({ sanitise: (html: string) => html }));

const CHARS = 100_000;
/** Ten times what the slowest takes on a busy machine; quadratic work takes minutes. */
const LIMIT_MS = 10_000;

const UNITS = [
  // quotes and lists
  ...[
    '>',
    '> ',
    '>\n',
    '> a\nb\n',
    '> > a\nb\n',
    '- ',
    '* ',
    '+ ',
    '1. ',
    '1) ',
    '- a\n  ',
    '\t- ',
  ],
  ...['> - ', '- > ', '> * 1. ', '- [ ] ', '>\t', '> ```\n', '- ```\n', '> | a |\n> |-|\n'],
  // emphasis and brackets
  ...['*', '_', '~', '**a', '*a ', 'a*', '_a ', '~~a', '*a_', '**_', '***', '*_~~', '中**', '“**'],
  ...['[', ']', '![', '[[', '](', '[a](', '[a][', '[a](b "', '[*', '[^a]: b\n', '[a]: b\n', '('],
  // HTML
  ...[
    '<',
    '<b>',
    '</b>',
    '<div>',
    '<sub>',
    '<kbd>',
    '<!--',
    '<![CDATA[',
    '<?',
    '<a b="',
    '&',
    '&#',
  ],
  // formulas
  ...['$', '$a', '$a ', '$$', '\\(', '\\[', '\\[\n', '$$\n', '$$\n\n', '\\frac{', '^{', '\\left('],
  // code, tables, headings, addresses
  ...[
    '`',
    '``a',
    '```\n',
    '~~~\n',
    '|',
    '|-',
    '| a |\n|-|\n',
    '|a',
    '#',
    '# ',
    '-\n',
    'a\n-\n',
    '=\n',
  ],
  ...['http://', 'www.', 'a@', 'a@b.', '<http://', 'https://a。', '\\', '!', '"'],
  // white space and letters
  ...[' ', '\t', ' \n', '\r', '\u0000', '\u0300', '🎉', '中', 'x'],
];

/** Each with each of a few that nest differently. */
const MIXTURES = ['> ', '- ', '**a ', '[', '<sub>', '$', '`', '\\['].flatMap((a, at, all) =>
  all.slice(at + 1).flatMap((b) => [`${a}${b}`, `${b}${a}`, `${a}\n${b}`]),
);

function render(text: string, growing: boolean): string {
  const began = performance.now();
  const blocks = new Blocks().update(text, growing);
  expect(performance.now() - began).toBeLessThan(LIMIT_MS);
  return blocks.map((it) => it.code?.text ?? it.html).join('\n');
}

const depthOf = (html: string): number => {
  let depth = 0;
  let most = 0;
  for (const [tag] of html.matchAll(/<\/?[a-z][^>]*>/g)) {
    if (!/^<(?:br|hr)/.test(tag)) depth += tag.startsWith('</') ? -1 : 1;
    most = Math.max(most, depth);
  }
  return most;
};

describe('runaway output', () => {
  it.each([...UNITS, ...MIXTURES])(
    '%j',
    (unit) => {
      const text = unit.repeat(CHARS / unit.length);
      const html = render(`Before **it**.\n\n${text}\n\nAfter **it**.`, false);
      expect(html).toContain('Before <strong>it</strong>.');
      expect(depthOf(html)).toBeLessThan(8 * MAX_BLOCK_NESTING);
      render(text, true);
    },
    60_000,
  );

  it('f78 shows the words at the end of a thousand quotes', () => {
    const html = render(`One.\n\n${'>'.repeat(2000)} deep\n\nTwo *three*.`, false);
    expect(html).toContain('deep');
    expect(html).toContain('<p>Two <em>three</em>.</p>');
    expect(html.match(/<blockquote>/g)).toHaveLength(MAX_BLOCK_NESTING);
  });

  it('draws only so many blocks, and the rest as it was written', () => {
    const text = 'word *x*\n\n'.repeat(5_000);
    const blocks = new Blocks().update(text, false);
    expect(blocks).toHaveLength(4_001);
    expect(blocks.at(-1)?.html).toContain('word *x*');
    expect(
      blocks
        .map((it) => it.source)
        .join('\n\n')
        .match(/word/g),
    ).toHaveLength(5_000);
  });

  it('nests as deep as people write', () => {
    expect(render('> > > > > > > > x', false).match(/<blockquote>/g)).toHaveLength(8);
    const list = Array.from({ length: 10 }, (_, n) => `${'  '.repeat(n)}- ${n}`).join('\n');
    expect(render(list, false).match(/<ul>/g)).toHaveLength(10);
  });

  it('grows without stopping the page', () => {
    const blocks = new Blocks();
    const text = `Intro.\n\n${'> '.repeat(20_000)}`;
    const began = performance.now();
    for (let end = 0; end < text.length; end += 500) blocks.update(text.slice(0, end), true);
    expect(performance.now() - began).toBeLessThan(LIMIT_MS);
  });

  it.each([
    '{',
    '^{',
    '_{',
    '\\sqrt{',
    '\\left(',
    '\\begin{matrix}',
    '\\tiny ',
    '\\boxed{',
    '\\bf ',
  ])('in a formula: %s', (unit) => {
    for (const chars of [400, 2000, 4000, CHARS]) {
      const opened = unit.repeat(chars / unit.length);
      const closed = `${opened}x${'}'.repeat(unit.endsWith('{') ? chars / unit.length : 0)}`;
      for (const tex of [opened, closed])
        expect(depthOf(typeset(tex, true) ?? '')).toBeLessThan(300);
    }
  });

  it('typesets formulas of a usual depth', () => {
    expect(typeset('\\frac{a}{b}'.repeat(100), true)).not.toBeNull();
    expect(typeset(`${'\\sqrt{'.repeat(20)}x${'}'.repeat(20)}`, true)).not.toBeNull();
  });
});
