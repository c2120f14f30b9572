/**
 * Mermaid's text as a picture. Fetched when a diagram is to be drawn, not with the page. It is laid out without a
 * document, so that the page's policy stands (Mermaid itself needs inline styles); it becomes an image from a blob,
 * in which nothing runs and from which nothing is fetched, and is sanitised before that all the same.
 */
import { renderMermaidSVG } from 'beautiful-mermaid';
import DOMPurify from 'dompurify';
import { readGantt } from './gantt';
import { drawGantt } from './gantt-svg';
import { read } from './mermaid-source';
import { drawPie, readPie } from './pie';

export interface Colours {
  readonly bg: string;
  readonly fg: string;
}

/** Laying out takes time that grows with the square of this, and nobody waits for it. */
const MOST_CHARS = 8_000;

const TAGS = [
  ...['svg', 'g', 'defs', 'marker', 'title', 'text', 'tspan', 'clippath'],
  ...['rect', 'circle', 'ellipse', 'line', 'path', 'polygon', 'polyline'],
];
const ATTRIBUTES = [
  ...[
    'viewbox',
    'width',
    'height',
    'x',
    'y',
    'x1',
    'y1',
    'x2',
    'y2',
    'cx',
    'cy',
    'r',
    'rx',
    'ry',
    'd',
  ],
  ...[
    'points',
    'transform',
    'dx',
    'dy',
    'id',
    'class',
    'fill',
    'stroke',
    'stroke-width',
    'opacity',
  ],
  ...['stroke-dasharray', 'stroke-linecap', 'stroke-linejoin', 'fill-opacity', 'text-anchor'],
  ...[
    'dominant-baseline',
    'font-size',
    'font-weight',
    'font-style',
    'font-family',
    'letter-spacing',
  ],
  ...['markerwidth', 'markerheight', 'refx', 'refy', 'orient', 'marker-start', 'marker-end'],
];
/** The drawing's own style sheet: colours by name. Nothing in it may lead elsewhere. */
const STYLE = /<style>([^]*?)<\/style>/;
const ELSEWHERE = /@import[^;]*;|url\([^)]*\)/g;
/** Styles of single elements: the policy complains of them as soon as they are parsed. */
const TAG = /<[a-z][^<>]*>/gi;
const unstyled = (tag: string): string => tag.replace(/\sstyle="[^"]*"/g, '');
/** What no XML file may hold. */
// eslint-disable-next-line no-control-regex -- they are what is meant
const NO_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu;
/** A value that leads out of the drawing: only its own markers may be named. */
const OUTSIDE = /url\((?!["']?#)|javascript:|data:|https?:/i;

/** An SVG file; null: it can't be drawn. */
export function draw(source: string, colours: Colours): string | null {
  if (source.length > MOST_CHARS) return null;
  try {
    const made = laidOut(source, colours);
    return made === null ? null : safe(made, colours);
  } catch {
    return null;
  }
}

/** Pies and Gantt charts are drawn here: what draws the others doesn't know them. */
function laidOut(source: string, colours: Colours): string | null {
  const kind = /^\w+/.exec(read(source).lines[0] ?? '')?.[0];
  if (kind === 'pie') {
    const pie = readPie(source);
    return pie && drawPie(pie);
  }
  if (kind === 'gantt') {
    const gantt = readGantt(source);
    return gantt && drawGantt(gantt);
  }
  return renderMermaidSVG(source, { ...colours, font: 'system-ui', padding: 16 });
}

function safe(made: string, { bg, fg }: Colours): string | null {
  const style = STYLE.exec(made)?.[1]?.replace(ELSEWHERE, '') ?? '';
  const purify = DOMPurify(window);
  purify.addHook('uponSanitizeAttribute', (_node, data) => {
    if (OUTSIDE.test(data.attrValue)) data.keepAttr = false;
  });
  const clean = made.replace(STYLE, '').replace(TAG, unstyled).replace(NO_XML, '');
  const body = purify.sanitize(clean, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM: true,
  });
  const svg = (body as HTMLElement).querySelector('svg');
  if (!svg) return null;
  // In the image alone: it never stands in the page's document.
  const xml = new XMLSerializer().serializeToString(svg);
  const own = `svg { --bg: ${bg}; --fg: ${fg}; background: ${bg}; }`;
  const at = xml.indexOf('>') + 1;
  return `${xml.slice(0, at)}<style>${own} ${style.replace(/[<&]/g, '')}</style>${xml.slice(at)}`;
}
