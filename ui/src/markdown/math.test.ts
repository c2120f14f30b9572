// @vitest-environment jsdom
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Blocks } from './blocks';
import { mayHoldFormula } from './formulas';
import { setTypeset } from './math';
import { typeset } from './tex';
import { PAYLOADS } from '../test/payloads';

const render = (text: string) =>
  new Blocks()
    .update(text, false)
    .map((it) => it.html)
    .join('');

function formulas(text: string): string[] {
  const root = document.createElement('div');
  root.innerHTML = render(text);
  return [...root.querySelectorAll('math')].map((it) => it.textContent ?? '');
}

describe('formulas', () => {
  beforeAll(() => setTypeset(typeset));
  afterAll(() => setTypeset(() => null));

  it.each<[string, string[]]>([
    ['a $x+1$ b', ['x+1']],
    ['a \\(x\\) b', ['x']],
    ['$$x$$', ['x']],
    ['\\[x\\]', ['x']],
    ['$$\nx\n+ y\n$$', ['x+y']],
    ['so\n$$\nx\n$$\nend', ['x']],
    ['- in a list $n^2$', ['n2']],
    ['| a |\n|---|\n| $k$ |', ['k']],
    ['It costs $5, not $10.', []],
    ['$5-$10', []],
    ['$ x $', []],
    ['a \\$x\\$ b', []],
    ['`$x$`', []],
    ['```\n$$x$$\n```', []],
    ['$$\nx\n\ny\n$$', ['xy']],
    ['$$ x\n\ny\n$$', []],
    ['\\[\na = b\n\nc = d\n\\]', ['a=bc=d']],
    ['$\\nosuchcommand$', []],
  ])('%s', (text, expected) => {
    expect(formulas(text)).toEqual(expected);
  });

  it('shows the source of what is none', () => {
    expect(render('a $\\nosuchcommand$ b')).toContain('$\\nosuchcommand$');
  });

  it.each(['\\href{javascript:alert(1)}{x}', '\\url{https://evil.example}', '\\htmlClass{a}{x}'])(
    'makes no link and no class: %s',
    (tex) => {
      const html = render(`$${tex}$`);
      expect(html).not.toMatch(/<a|href=|evil"/);
    },
  );

  it('runs no macro that defines itself', () => {
    expect(formulas('$\\def\\x{\\x\\x}\\x$')).toEqual([]);
  });

  it.each(PAYLOADS)('lets nothing through within a formula: %s', (payload) => {
    const root = document.createElement('div');
    root.innerHTML = render(`$\\text{${payload}}$ and $x$`);
    const bad = 'script,iframe,object,embed,img,svg,style,link,form,input,annotation-xml,mglyph';
    expect(root.querySelector(`${bad},[href],[src],[style],[onerror]`)).toBeNull();
  });

  it('is only looked for where one may be', () => {
    expect(mayHoldFormula('plain *text* [1]')).toBe(false);
    expect(mayHoldFormula('a \\(x\\)')).toBe(true);
  });
});
