/** Draws Mermaid's pie charts: the circle and a legend. */
import { isSilent, readMermaid } from './mermaid-source';
import { percent } from '../shared/format';
import {
  svgDocument,
  svgElement,
  truncateToWidth,
  HUES,
  LETTERS,
  mixColour,
  rounded,
  text,
  widthOf,
} from './svg';

export interface Pie {
  readonly title: string;
  /** Show values in the legend. */
  readonly showData: boolean;
  readonly slices: readonly { readonly label: string; readonly value: number }[];
}

/** More slices cannot be told apart. */
const MAX_SLICES = 60;

const HEAD = /^pie(?:\s+(showData))?(?:\s+title\s+(.+))?$/;
const SLICE = /^(?:"([^"]*)"|'([^']*)')\s*:\s*(\d+(?:\.\d+)?)$/;

/** Parses a pie chart; null if it is unsupported. */
export function readPie(source: string): Pie | null {
  const { lines, title } = readMermaid(source);
  const head = HEAD.exec(lines[0] ?? '');
  if (!head) return null;
  const pie = { title: head[2] ?? title, showData: head[1] !== undefined };
  const slices = [];
  for (const line of lines.slice(1)) {
    const slice = SLICE.exec(line);
    const named = /^title\s+(.+)$/.exec(line);
    if (slice) slices.push({ label: slice[1] ?? slice[2] ?? '', value: Number(slice[3]) });
    else if (named?.[1] !== undefined) pie.title = named[1];
    else if (line === 'showData') pie.showData = true;
    else if (!isSilent(line)) return null;
  }
  const total = slices.reduce((sum, it) => sum + it.value, 0);
  const isDrawable = total > 0 && Number.isFinite(total) && slices.length <= MAX_SLICES;
  return isDrawable ? { ...pie, slices } : null;
}

const RADIUS = 110;
const GAP = 28;
const EDGE = 16;
const ROW = 24;
const BOX = 14;
const WORDS = 13;
/** Narrower slices get no percentage. */
const MIN_SHARE = 0.04;
const MAX_LABEL_WIDTH = 300;
const MAX_TITLE_WIDTH = 600;

const STYLE = [
  LETTERS,
  '.slice { stroke: var(--bg); stroke-width: 2px; }',
  '.share { font-weight: 600; }',
  ...HUES.map((hue, at) => `.hue-${at} { fill: ${mixColour(hue, 58)}; }`),
].join('\n');

const hue = (at: number): string => `hue-${at % HUES.length}`;

export function drawPie({ title, showData, slices }: Pie): string {
  const total = slices.reduce((sum, it) => sum + it.value, 0);
  const words = slices.map(({ label, value }) =>
    truncateToWidth(showData ? `${label} [${value}]` : label, WORDS, MAX_LABEL_WIDTH),
  );
  const legend = BOX + 8 + Math.max(...words.map((it) => widthOf(it, WORDS)));
  const top = EDGE + (title === '' ? 0 : 32);
  const height = Math.max(2 * RADIUS, slices.length * ROW);
  const wide = Math.min(widthOf(title, 17), MAX_TITLE_WIDTH);
  const width = 2 * EDGE + Math.max(2 * RADIUS + GAP + legend, wide);
  const centre: Point = [EDGE + RADIUS, top + height / 2];
  const named = { x: width / 2, y: EDGE + 12, 'text-anchor': 'middle', class: 'title' };
  return svgDocument(
    width,
    top + height + EDGE,
    STYLE,
    [
      title === '' ? '' : text(named, truncateToWidth(title, 17, width - 2 * EDGE)),
      ...circle(slices, total, centre),
      ...words.map((it, at) => entry(it, at, [centre[0] + RADIUS + GAP, centre[1]], slices.length)),
    ].join(''),
  );
}

type Point = readonly [number, number];

/** Point on the circle, clockwise from the top. */
function* circle(slices: Pie['slices'], total: number, centre: Point): Generator<string> {
  let begin = 0;
  for (const [at, { value }] of slices.entries()) {
    const share = value / total;
    yield slice(centre, begin, share, at);
    if (share >= MIN_SHARE) yield shareOf(centre, begin + share / 2, share);
    begin += share;
  }
}

const onCircle = ([x, y]: Point, turn: number, radius: number): Point => [
  rounded(x + radius * Math.sin(turn * 2 * Math.PI)),
  rounded(y - radius * Math.cos(turn * 2 * Math.PI)),
];

function slice(centre: Point, begin: number, share: number, at: number): string {
  const look = { class: `slice ${hue(at)}` };
  // An arc that ends where it begins draws nothing.
  if (share > 0.9999)
    return svgElement('circle', { ...look, cx: centre[0], cy: centre[1], r: RADIUS });
  const [x1, y1] = onCircle(centre, begin, RADIUS);
  const [x2, y2] = onCircle(centre, begin + share, RADIUS);
  const large = share > 0.5 ? 1 : 0;
  const path = [
    `M${centre.join(' ')}`,
    `L${x1} ${y1}`,
    `A${RADIUS} ${RADIUS} 0 ${large} 1 ${x2} ${y2}`,
  ];
  return svgElement('path', { ...look, d: `${path.join(' ')} Z` });
}

function shareOf(centre: Point, turn: number, share: number): string {
  const [x, y] = share > 0.9999 ? centre : onCircle(centre, turn, RADIUS * 0.68);
  const look = { 'text-anchor': 'middle', 'dominant-baseline': 'central', class: 'share' };
  return text({ x, y, ...look }, percent(share));
}

function entry(words: string, at: number, [x, middle]: Point, of: number): string {
  const y = middle + (at - (of - 1) / 2) * ROW;
  const box = { x, y: y - BOX / 2, width: BOX, height: BOX, rx: 3, class: hue(at) };
  const beside = { x: x + BOX + 8, y, 'dominant-baseline': 'central' };
  return svgElement('rect', box) + text(beside, words);
}
