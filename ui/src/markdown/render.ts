/**
 * Renders Markdown (GFM) to sanitised HTML. Raw HTML is shown as text. Links and images become inert elements
 * with `data-url`: nothing loads, and links open only after a click and a confirmation.
 */
import { Marked, type Token, type Tokens, type TokensList } from 'marked';
import { BoundedLexer, MAX_INLINE_NESTING } from './bounded-lexer';
import { ChatTokenizer } from './chat-tokenizer';
import { escapeHtml } from './escape';
import { hostOf, namesHost, safeUrl } from './links';
import { mathExtension } from './math';
import { sanitise } from './sanitise';
import { t } from '../i18n';

export type Highlight = (code: string, language: string) => string | null;

/** Longer code inside a list or quote is not highlighted: it is rendered again with every new token. */
const NESTED_COLOURED_CHARS = 6_000;

const HARMLESS_TAG = /^<(\/?)(?:(br)|sub|sup|kbd)\s*\/?>$/i;

let highlight: Highlight | null = null;
/** Harmless elements that are open in the block being rendered. */
let openTags = 0;

/** Sets the highlighter for code inside lists and quotes. */
export function setHighlight(colour: Highlight): void {
  highlight = colour;
}

const marked = new Marked({ gfm: true, breaks: true });

marked.use(mathExtension(escapeHtml));
marked.use({
  renderer: {
    html({ text }: Tokens.HTML | Tokens.Tag): string {
      const tag = HARMLESS_TAG.exec(text.trim());
      if (!tag) return escapeHtml(text);
      if (!tag[2]) openTags += tag[1] ? -1 : 1;
      return openTags <= MAX_INLINE_NESTING ? text : escapeHtml(text);
    },
    heading({ tokens, depth }: Tokens.Heading): string {
      // Shifts headings: the page has its own above those of an answer.
      const level = Math.min(depth + 2, 6);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
    },
    link({ href, tokens }: Tokens.Link): string {
      return linkHtml(href, this.parser.parseInline(tokens), plainText(tokens));
    },
    image({ href, text }: Tokens.Image): string {
      const label = text ? t('chat.image', { text }) : t('chat.image_unnamed');
      return linkHtml(href, escapeHtml(label), label);
    },
    code({ text, lang }: Tokens.Code): string {
      return codeHtml(text, lang ?? '');
    },
    checkbox({ checked }: Tokens.Checkbox): string {
      const [mark, label] = checked ? ['☑', t('chat.task_done')] : ['☐', t('chat.task_open')];
      return `<span class="md-task" role="img" aria-label="${escapeHtml(label)}">${mark}</span> `;
    },
  },
});

const OPTIONS = { ...marked.defaults, tokenizer: new ChatTokenizer(marked.defaults) };

function plainText(tokens: Token[]): string {
  return tokens.map((it) => ('text' in it ? String(it.text) : '')).join('');
}

function linkHtml(href: string, inner: string, text: string): string {
  const url = safeUrl(href);
  if (url === null) return inner;
  const host = hostOf(url);
  const shown = namesHost(text, host) ? '' : `<span class="md-host"> (${escapeHtml(host)})</span>`;
  return `<a class="md-link" role="link" tabindex="0" data-url="${escapeHtml(url)}">${inner}</a>${shown}`;
}

/** Returns the language that a code block names, or an empty string. */
export const languageOf = (info: string): string =>
  /^[\w+#.-]+/.exec(info)?.[0]?.toLowerCase() ?? '';

/** Code inside a list or quote. Top-level code is highlighted piece by piece instead. */
function codeHtml(code: string, info: string): string {
  const language = languageOf(info);
  const coloured = code.length <= NESTED_COLOURED_CHARS ? highlight?.(code, language) : null;
  return (
    `<div class="md-code"><div class="md-code-head"><span>${escapeHtml(language || t('chat.code_text'))}</span>` +
    `<button type="button" class="md-copy" data-copy="code">${escapeHtml(t('common.copy'))}</button></div>` +
    `<pre tabindex="0"><code class="hljs">${coloured ?? escapeHtml(code)}</code></pre></div>`
  );
}

/** Lexes a text. `isGrowing`: more may follow. */
export function lex(source: string, isGrowing: boolean): TokensList {
  return new BoundedLexer(OPTIONS, isGrowing).lex(source);
}

/**
 * Renders one top-level block other than code; as plain text if that fails. `links`: reference definitions of the
 * whole text.
 */
export function renderBlock(token: Token, source: string, links: TokensList['links']): string {
  try {
    return blockHtml(token, source, links);
  } catch {
    return plainHtml(source);
  }
}

/** What cannot be rendered is shown as it was written. */
export const plainHtml = (source: string): string =>
  `<p class="md-plain">${escapeHtml(source.trimEnd())}</p>`;

function blockHtml(token: Token, source: string, links: TokensList['links']): string {
  const needsLinks = Object.keys(links).length > 0 && source.includes('[');
  const tokens = needsLinks ? lexWith(source, links) : [token];
  openTags = 0;
  const html = marked.parser(tokens);
  return sanitise(
    token.type === 'table' ? `<div class="md-table" tabindex="0">${html}</div>` : html,
    // Model output is escaped, so only a formula can have put it there.
    html.includes('<math'),
  );
}

function lexWith(source: string, links: TokensList['links']): Token[] {
  const definitions = Object.entries(links)
    .map(([label, link]) => `[${label}]: <${link.href ?? ''}>`)
    .join('\n');
  return lex(`${definitions}\n\n${source}`, false);
}
