// @vitest-environment jsdom
import { describe, expect, it } from 'vitest';
import { Blocks, type Code } from './blocks';
import { IncrementalHighlighter } from './incremental-highlight';
import { highlight } from './highlight';
import { hostOf, safeUrl } from './links';
import { sanitise } from './sanitise';
import { PAYLOADS } from '../test/payloads';

const render = (text: string) =>
  new Blocks()
    .update(text, false)
    .map((it) => (it.code ? codeHtml(it.code) : it.html))
    .join('');

const codeHtml = (code: Code) =>
  [null, highlight]
    .flatMap((colours) =>
      new IncrementalHighlighter().update(code.text, code.language, false, colours),
    )
    .map((it) => it.html)
    .join('');

const ALLOWED_ATTRIBUTES = new Set(
  'class role tabindex type title align start scope aria-label aria-hidden data-url data-copy'.split(
    ' ',
  ),
);
const FORBIDDEN =
  'script,iframe,object,embed,img,svg,math,link,style,meta,base,form,input,video,audio,[href],[src],[style]';

/** Nothing that runs, loads, navigates or acts may come out. */
function expectHarmless(html: string) {
  const root = document.createElement('div');
  root.innerHTML = html;
  expect(root.querySelector(FORBIDDEN)).toBeNull();
  for (const element of root.querySelectorAll('*')) {
    for (const { name } of element.attributes) {
      expect(ALLOWED_ATTRIBUTES, `${name} in ${html}`).toContain(name);
    }
  }
  for (const link of root.querySelectorAll<HTMLElement>('[data-url]')) {
    expect(link.dataset.url).toMatch(/^(?:https?|mailto):/);
  }
}

describe('what a model writes', () => {
  it.each(PAYLOADS)('%s', (payload) => {
    expectHarmless(render(payload));
    expectHarmless(render(`text ${payload} text`));
    expectHarmless(render(`| a |\n|---|\n| ${payload.replace(/\n/g, ' ')} |`));
    expectHarmless(render(`- ${payload}`));
    expectHarmless(render('```' + payload.replace(/\n/g, ' ') + '\n' + payload + '\n```'));
    expectHarmless(sanitise(payload));
  });

  it('shows raw HTML as the text it is', () => {
    const root = document.createElement('div');
    root.innerHTML = render('<b onclick="x()">bold</b>');
    expect(root.textContent?.trim()).toBe('<b onclick="x()">bold</b>');
  });

  it('keeps line breaks in tables', () => {
    expect(render('| a |\n|---|\n| b<br>c |')).toContain('b<br>c');
  });

  it('shows where a link leads, and images as links', () => {
    const root = document.createElement('div');
    root.innerHTML = render('[here](https://evil.example/x) ![dot](https://t.example/p.png)');
    expect(root.textContent).toContain('here (evil.example)');
    expect(root.textContent).toContain('Image: dot (t.example)');
    expect(root.querySelectorAll('[data-url]')).toHaveLength(2);
  });

  it('does not repeat the host of an address that is written out', () => {
    expect(render('https://example.org/a')).not.toContain('md-host');
  });
});

describe('links', () => {
  it.each([
    ['https://example.org', 'https://example.org/'],
    [' HTTP://Example.org/a b ', 'http://example.org/a%20b'],
    ['mailto:a@example.org', 'mailto:a@example.org'],
    ['javascript:alert(1)', null],
    ['JaVaScRiPt:alert(1)', null],
    ['java\nscript:alert(1)', null],
    ['data:text/html,x', null],
    ['file:///etc/passwd', null],
    ['smb://host/share', null],
    ['vbscript:x', null],
    ['tauri://localhost', null],
    ['ipc://localhost', null],
    ['blob:https://x/y', null],
    ['/relative', null],
    ['//host/path', null],
    ['#part', null],
    ['', null],
  ])('%s → %s', (href, expected) => {
    expect(safeUrl(href)).toBe(expected);
  });

  it('names the host that counts', () => {
    expect(hostOf('https://good.example@evil.example/x')).toBe('evil.example');
    expect(hostOf('https://xn--pple-43d.com/')).toBe('xn--pple-43d.com');
    expect(hostOf('mailto:a@example.org?subject=x')).toBe('a@example.org');
  });
});
