/**
 * Markdown (GFM) to sanitised HTML. Raw HTML is shown as text. Links and images become inert
 * elements with `data-url`: nothing is fetched, and nothing is followed but by a click that asks.
 */
import { Marked, type Token, type Tokens, type TokensList } from 'marked';
import { hostOf, safeUrl } from './links';
import { sanitise } from './sanitise';

export type Highlight = (code: string, language: string) => string | null;

/** Above this a block that still grows is shown plain; it is coloured once it is finished. */
const HIGHLIGHT_GROWING_BYTES = 8_000;
/** Above this colouring costs more than it gives. */
const HIGHLIGHT_BYTES = 200_000;

const HARMLESS_TAG = /^<\/?(?:br|sub|sup|kbd)\s*\/?>$/i;

const ESCAPES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (char) => ESCAPES[char] ?? char);

let highlighter: Highlight | null = null;

const marked = new Marked({ gfm: true, breaks: true });

marked.use({
  renderer: {
    html({ text }: Tokens.HTML | Tokens.Tag): string {
      return HARMLESS_TAG.test(text.trim()) ? text : escapeHtml(text);
    },
    heading({ tokens, depth }: Tokens.Heading): string {
      // The page has its own headings above those of an answer.
      const level = Math.min(depth + 2, 6);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
    },
    link({ href, tokens }: Tokens.Link): string {
      return linkHtml(href, this.parser.parseInline(tokens), plainText(tokens));
    },
    image({ href, text }: Tokens.Image): string {
      const label = `Image: ${text || 'no description'}`;
      return linkHtml(href, escapeHtml(label), label);
    },
    code({ text, lang }: Tokens.Code): string {
      return codeHtml(text, lang ?? '', false);
    },
    checkbox({ checked }: Tokens.Checkbox): string {
      const [mark, label] = checked ? ['☑', 'done'] : ['☐', 'open'];
      return `<span class="md-task" role="img" aria-label="${label}">${mark}</span> `;
    },
  },
});

function plainText(tokens: Token[]): string {
  return tokens.map((it) => ('text' in it ? String(it.text) : '')).join('');
}

function linkHtml(href: string, inner: string, text: string): string {
  const url = safeUrl(href);
  if (url === null) return inner;
  const host = hostOf(url);
  const shown = text.includes(host) ? '' : `<span class="md-host"> (${escapeHtml(host)})</span>`;
  return `<a class="md-link" role="link" tabindex="0" data-url="${escapeHtml(url)}">${inner}</a>${shown}`;
}

/** A code block with its label and copy button; `growing` while more of it may come. */
export function codeHtml(code: string, info: string, growing: boolean): string {
  const language = /^[\w+#.-]+/.exec(info)?.[0]?.toLowerCase() ?? '';
  return (
    `<div class="md-code"><div class="md-code-head"><span class="md-code-lang">${escapeHtml(language || 'text')}</span>` +
    `<button type="button" class="md-copy" data-copy="code">Copy</button></div>` +
    `<pre tabindex="0"><code class="hljs">${codeInner(code, language, growing)}</code></pre></div>`
  );
}

function codeInner(code: string, language: string, growing: boolean): string {
  const limit = growing ? HIGHLIGHT_GROWING_BYTES : HIGHLIGHT_BYTES;
  const coloured = code.length <= limit ? highlighter?.(code, language) : null;
  return coloured ?? escapeHtml(code);
}

/** Sets what colours code from now on. */
export function setHighlighter(highlight: Highlight): void {
  highlighter = highlight;
}

export function lex(source: string): TokensList {
  return marked.lexer(source);
}

/** One top-level block; `links` are the reference definitions of the whole text. */
export function renderBlock(
  token: Token,
  source: string,
  links: TokensList['links'],
  growing: boolean,
): string {
  if (token.type === 'code') {
    const code = token as Tokens.Code;
    return sanitise(codeHtml(code.text, code.lang ?? '', growing));
  }
  const needsLinks = Object.keys(links).length > 0 && source.includes('[');
  const tokens = needsLinks ? lexWith(source, links) : [token];
  const html = marked.parser(tokens);
  return sanitise(
    token.type === 'table' ? `<div class="md-table" tabindex="0">${html}</div>` : html,
  );
}

function lexWith(source: string, links: TokensList['links']): Token[] {
  const definitions = Object.entries(links)
    .map(([label, link]) => `[${label}]: <${link.href ?? ''}>`)
    .join('\n');
  return marked.lexer(`${definitions}\n\n${source}`);
}
