import { describe, expect, it, vi } from 'vitest';
import { Blocks, type Block } from './blocks';

// Sanitising is tested on its own, and slow without a browser.
vi.mock('./sanitise', () => ({ sanitise: (html: string) => html }));

const TEXTS: Record<string, string> = {
  prose: 'One paragraph,\nover two lines.\n\nAnother *one*.\n\nA third with `code`.',
  headings: '# One\n\ntext\n\nTwo\n---\n\ntext\n\nThree\n===\nmore',
  lists:
    '- a\n- b\n\n  more of b\n\n- c\n\n1. one\n2. two\n   - nested\n\nafter\n\n* x\n*\n**bold** y',
  code: 'Look:\n\n```rust\nfn main() {\n\n    println!("# no heading");\n}\n```\n\nand\n\n~~~\nplain\n\n```\n~~~\nend',
  open: 'Then:\n\n```python\nprint(1)\n\nprint(2)\n',
  tables: 'x\n\n| a | b |\n| --- | :-: |\n| 1 | 2 |\n| 3 | 4 |\n\nafter',
  quotes: '> one\n> two\nlazy\n\n> three\n\nend',
  rules: 'a\n\n---\n\nb\n\n***\n\n- - -\nc',
  html: 'a\n\n<div>\n\n*b*\n\n</div>\n\n<!-- c\n\nd -->\n\ne',
  references: 'See [the page][p] and [p].\n\nMore.\n\n[p]: https://example.org/x\n\nEnd [p].',
  tasks: '- [ ] open\n- [x] done\n\nend',
  crlf: 'a\r\n\r\n- b\r\n- c\r\n\r\nd',
  indented: 'a\n\n    code\n\n    more code\n\nb\n\n- c\n\n      code in c\n\nd',
  math: 'Let $x$ and\n\n$$\na\n+ b\n- c\n$$\n\nthen \\(y\\).\n\n\\[\nz\n\\]\nend',
  prices: 'It costs $5 or $10.\n\n$$ is no formula\n\n- a\n- b $3\n\nend $$',
  open_math: 'so\n\n$$\na\n- b',
  blank_math:
    'so\n\n$$\na\n\n- b\n\n$$\nthen: \\[\nx\n\ny\n\\] end\n\n\\[ stray\n\n- a\n- b\n\nend',
  stray_math: '$$\n\n- a\n- b\n\n# c\n\nd $$\n\n> \\[\n>\n> e\n\nf \\]\n\ng',
  table_math: '| a | b |\n|---|---|\n| $|x|$ | 1 |\n| $5 | $6 |\n\nafter',
  cjk: '访问https://example.com，然后**“重点”**内容\n\n~5 to ~10 ~~x~~',
  blank: '\n\n\na\n\n\n\n\nb\n\n',
};

const html = (blocks: readonly Block[]) =>
  blocks.map((it) => (it.code ? `[${it.code.language}]${it.code.text}` : it.html)).join('\n');
const whole = (text: string) => html(new Blocks().update(text, false));

describe('Blocks', () => {
  it.each(Object.entries(TEXTS))('%s: the same however it grows', (_name, text) => {
    for (const step of [1, 2, 3, 7, 20]) {
      const blocks = new Blocks();
      for (let end = 0; end < text.length; end += step) blocks.update(text.slice(0, end), true);
      expect(html(blocks.update(text, false))).toBe(whole(text));
    }
  });

  it('waits for the end of a formula only so long', () => {
    const text = `\\[\n\na\n\n${'b *c*\n\n'.repeat(900)}\\]\n\nend`;
    const blocks = new Blocks();
    for (let end = 0; end < text.length; end += 50) blocks.update(text.slice(0, end), true);
    expect(html(blocks.update(text, false))).toBe(whole(text));
  });

  it('keeps finished blocks as they are', () => {
    const text = 'One.\n\nTwo.\n\n- a\n- b\n\nThree.\n\n```js\nlet x\n```\n\nFour.\n\nFive';
    const blocks = new Blocks();
    let before = blocks.update('', true);
    let kept = 0;
    for (let end = 1; end <= text.length; end++) {
      const now = blocks.update(text.slice(0, end), true);
      // All but the last two of the earlier blocks are the very same objects.
      for (let at = 0; at < before.length - 2; at++) {
        expect(now[at]).toBe(before[at]);
        kept++;
      }
      before = now;
    }
    expect(kept).toBeGreaterThan(100);
  });

  it('starts over when the text is another one', () => {
    const blocks = new Blocks();
    blocks.update('One.\n\nTwo.\n\nThree.\n\n', true);
    expect(html(blocks.update('Other.\n\nText.', false))).toBe(whole('Other.\n\nText.'));
  });

  it('has a key for each block', () => {
    const keys = new Blocks().update(TEXTS.lists + '\n\n' + TEXTS.code, false).map((it) => it.at);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('lexes a long answer in time that grows with its length', () => {
    const blocks = new Blocks();
    const paragraph = 'Some words that make a line of text, as answers have them.\n\n';
    const text = paragraph.repeat(1500);
    const began = performance.now();
    for (let end = 0; end < text.length; end += 60) blocks.update(text.slice(0, end), true);
    // Quadratic work would take minutes.
    expect(performance.now() - began).toBeLessThan(10_000);
  });
});
