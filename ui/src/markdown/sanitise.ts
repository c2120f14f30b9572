/**
 * The only gate through which HTML reaches the page. The renderer already escapes model output; this is the
 * second line of defence: an allow-list of elements and attributes, nothing that loads, navigates or runs.
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

/** MathML elements for formulas, without those that can embed HTML or links. */
const MATH_TAGS = [
  ...['math', 'semantics', 'mrow', 'mi', 'mo', 'mn', 'ms', 'mtext', 'mspace', 'mstyle', 'merror'],
  ...['mfrac', 'msqrt', 'mroot', 'msub', 'msup', 'msubsup', 'munder', 'mover', 'munderover'],
  ...['mtable', 'mtr', 'mtd', 'mpadded', 'mphantom', 'menclose', 'mmultiscripts', 'mprescripts'],
];

const MATH_ATTRIBUTES = [
  ...['display', 'displaystyle', 'scriptlevel', 'mathvariant', 'mathcolor', 'mathbackground'],
  ...['stretchy', 'fence', 'separator', 'accent', 'accentunder', 'movablelimits', 'symmetric'],
  ...['largeop', 'form', 'lspace', 'rspace', 'minsize', 'maxsize', 'linethickness', 'notation'],
  ...['width', 'height', 'depth', 'voffset', 'columnalign', 'columnspacing', 'columnlines'],
  ...['rowspacing', 'rowlines', 'frame'],
];

/** Classes that the renderer and the highlighter write. */
const CLASS = /^(?:hljs[\w-]*|language_|function_|class_|inherited__|md-[\w-]+)$/;

const COMMON = {
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOW_UNKNOWN_PROTOCOLS: false,
  KEEP_CONTENT: true,
};

const plain = gate(TAGS, ATTRIBUTES);
const withMath = gate([...TAGS, ...MATH_TAGS], [...ATTRIBUTES, ...MATH_ATTRIBUTES]);

function gate(tags: string[], attributes: string[]) {
  const purify = DOMPurify(window);
  purify.setConfig({ ...COMMON, ALLOWED_TAGS: tags, ALLOWED_ATTR: attributes });
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
  return purify;
}

/** Sanitises HTML. `math`: allows MathML, for formulas that the renderer typeset. */
export function sanitise(html: string, math = false): string {
  return (math ? withMath : plain).sanitize(html);
}
