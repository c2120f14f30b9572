/**
 * The only gate through which HTML reaches the page. The renderer already escapes what a model
 * writes; this is the second lock: a short list of elements and attributes, nothing that loads,
 * nothing that navigates, nothing that runs.
 */
import DOMPurify from 'dompurify';
import { safeUrl } from './links';

const TAGS = [
  ...['p', 'br', 'hr', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'blockquote', 'ul', 'ol', 'li'],
  ...['strong', 'em', 'del', 'code', 'pre', 'sub', 'sup', 'kbd', 'a', 'span', 'div', 'button'],
  ...['table', 'thead', 'tbody', 'tr', 'th', 'td'],
];

const ATTRIBUTES = [
  ...['class', 'role', 'tabindex', 'type', 'title', 'align', 'start', 'scope'],
  ...['aria-label', 'aria-hidden', 'data-url', 'data-copy'],
];

/** Classes that our own renderer and the highlighter write. */
const CLASS = /^(?:hljs[\w-]*|language_|function_|class_|inherited__|md-[\w-]+)$/;

const purify = DOMPurify(window);

purify.addHook('uponSanitizeAttribute', (_node, data) => {
  if (data.attrName === 'class') {
    data.attrValue = data.attrValue
      .split(/\s+/)
      .filter((name) => CLASS.test(name))
      .join(' ');
  } else if (data.attrName === 'data-url') {
    data.keepAttr = safeUrl(data.attrValue) !== null;
  }
});

export function sanitise(html: string): string {
  return purify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    ALLOW_UNKNOWN_PROTOCOLS: false,
    KEEP_CONTENT: true,
  });
}
