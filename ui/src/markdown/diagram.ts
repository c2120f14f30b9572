/**
 * Renders Mermaid source as an SVG image. Loaded with the first diagram. The layout needs no document, so the
 * CSP holds (Mermaid itself needs inline styles). The SVG is sanitised and shown as a blob image, in which
 * nothing runs or loads.
 */
import { renderMermaidSVG } from 'beautiful-mermaid';
import DOMPurify from 'dompurify';
import { readGantt } from './gantt';
import { drawGantt } from './gantt-svg';
import { readMermaid } from './mermaid-source';
import { drawPie, readPie } from './pie';

export interface Colours {
  readonly bg: string;
  readonly fg: string;
}

/** Layout time grows quadratically; longer sources take too long. */
const MAX_CHARS = 8_000;

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
/** The drawing's style sheet: colours by name. It must not load anything. */
const STYLE = /<style>([^]*?)<\/style>/;
const EXTERNAL = /@import[^;]*;|url\([^)]*\)/g;
/** Inline styles of elements violate the CSP as soon as they are parsed. */
const TAG = /<[a-z][^<>]*>/gi;
const removeStyle = (tag: string): string => tag.replace(/\sstyle="[^"]*"/g, '');
/** Characters that XML forbids. */
// eslint-disable-next-line no-control-regex -- they are the point
const NO_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu;
/** A value that refers outside the drawing: only its own markers are allowed. */
const EXTERNAL_VALUE = /url\((?!["']?#)|javascript:|data:|https?:/i;

/** Renders an SVG file; null if the source cannot be drawn. */
export function draw(source: string, colours: Colours): string | null {
  if (source.length > MAX_CHARS) return null;
  try {
    const svgText = layOut(source, colours);
    return svgText === null ? null : sanitiseSvg(svgText, colours);
  } catch {
    return null;
  }
}

/** Draws pie and Gantt charts itself: the library lacks them. */
function layOut(source: string, colours: Colours): string | null {
  const kind = /^\w+/.exec(readMermaid(source).lines[0] ?? '')?.[0];
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

function sanitiseSvg(svgText: string, { bg, fg }: Colours): string | null {
  const style = STYLE.exec(svgText)?.[1]?.replace(EXTERNAL, '') ?? '';
  const purify = DOMPurify(window);
  purify.addHook('uponSanitizeAttribute', (_node, data) => {
    if (EXTERNAL_VALUE.test(data.attrValue)) data.keepAttr = false;
  });
  const clean = svgText.replace(STYLE, '').replace(TAG, removeStyle).replace(NO_XML, '');
  const body = purify.sanitize(clean, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM: true,
  });
  const svg = (body as HTMLElement).querySelector('svg');
  if (!svg) return null;
  // Only inside the image: never part of the page's document.
  const xml = new XMLSerializer().serializeToString(svg);
  const own = `svg { --bg: ${bg}; --fg: ${fg}; background: ${bg}; }`;
  const at = xml.indexOf('>') + 1;
  return `${xml.slice(0, at)}<style>${own} ${style.replace(/[<&]/g, '')}</style>${xml.slice(at)}`;
}
