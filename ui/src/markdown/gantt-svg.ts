/** Draws a Gantt chart: a band for each section, a bar for each task, a time axis below. */
import type { Gantt, Task } from './gantt';
import { axisTicks } from './gantt-axis';
import {
  svgDocument,
  svgElement,
  truncateToWidth,
  HUES,
  LETTERS,
  mixColour,
  text,
  widthOf,
} from './svg';

const EDGE = 16;
const PLOT = 640;
const ROW = 30;
const BAR = 20;
const AXIS = 28;
const WORDS = 12;
const MAX_SECTION_WIDTH = 150;
/** Space for one tick of the axis. */
const TICK_WIDTH = 96;
/** Minimum width of a task without duration. */
const MIN_BAR_WIDTH = 3;
const RED = '#c8372d';

const STYLE = [
  LETTERS,
  `text { font-size: ${WORDS}px; }`,
  '.section { font-weight: 600; }',
  `.band-0 { fill: ${mixColour('var(--fg)', 5)}; }`,
  '.band-1 { fill: none; }',
  `.mark { stroke: ${mixColour('var(--fg)', 14)}; }`,
  `.time { fill: ${mixColour('var(--fg)', 70)}; font-size: 11px; }`,
  `.task { fill: ${mixColour(HUES[1], 42)}; stroke: ${mixColour(HUES[1], 75)}; }`,
  `.active { fill: ${mixColour(HUES[0], 50)}; stroke: ${mixColour(HUES[0], 85)}; }`,
  `.done { fill: ${mixColour('var(--fg)', 12)}; stroke: ${mixColour('var(--fg)', 35)}; stroke-dasharray: 4 3; }`,
  `.milestone { fill: ${mixColour(HUES[3], 75)}; stroke: ${mixColour(HUES[3], 100)}; }`,
  `.crit { stroke: ${RED}; stroke-width: 2px; }`,
].join('\n');

export function drawGantt({ title, axis, tasks }: Gantt): string {
  const names = [...new Set(tasks.map((it) => it.section))];
  const widest = Math.max(...names.map((it) => widthOf(it, WORDS) * 1.08));
  const left = EDGE + (widest > 0 ? Math.min(Math.ceil(widest) + 1, MAX_SECTION_WIDTH) + EDGE : 0);
  const top = EDGE + (title === '' ? 0 : 32);
  const bottom = top + tasks.length * ROW;
  const width = left + PLOT + EDGE;
  const from = Math.min(...tasks.map((it) => it.start));
  const to = Math.max(...tasks.map((it) => it.end), from + 1);
  const x = (at: number): number => left + ((at - from) / (to - from)) * PLOT;
  const named = { x: width / 2, y: EDGE + 12, 'text-anchor': 'middle', class: 'title' };
  const content = [
    title === '' ? '' : text(named, truncateToWidth(title, 17, width - 2 * EDGE)),
    ...drawBands(tasks, top, width, left),
    ...axisTicks(from, to, PLOT / TICK_WIDTH, axis).map((it) =>
      drawTick(it.label, x(it.at), top, bottom),
    ),
    ...tasks.map((it, at) => drawTask(it, x(it.start), x(it.end), top + (at + 0.5) * ROW, left)),
  ];
  return svgDocument(width, bottom + AXIS + EDGE / 2, STYLE, content.join(''));
}

/** One band for each run of tasks in the same section. */
function* drawBands(tasks: readonly Task[], top: number, width: number, left: number) {
  let [begin, n] = [0, 0];
  for (let at = 1; at <= tasks.length; at++) {
    const name = tasks[begin]?.section ?? '';
    if (at < tasks.length && tasks[at]?.section === name) continue;
    const [y, height] = [top + begin * ROW, (at - begin) * ROW];
    yield svgElement('rect', { x: 0, y, width, height, class: `band-${n % 2}` });
    const place = { x: EDGE, y: y + height / 2, 'dominant-baseline': 'central', class: 'section' };
    if (name !== '') yield text(place, truncateToWidth(name, WORDS * 1.08, left - 2 * EDGE));
    [begin, n] = [at, n + 1];
  }
}

function drawTick(label: string, x: number, top: number, bottom: number): string {
  const place = { x, y: bottom + 18, 'text-anchor': 'middle', class: 'time' };
  return (
    svgElement('line', { x1: x, y1: top, x2: x, y2: bottom + 5, class: 'mark' }) +
    text(place, label)
  );
}

function drawTask(it: Task, from: number, to: number, middle: number, left: number): string {
  const look = { class: ['task', ...it.marks].join(' ') };
  const isPoint = it.marks.includes('milestone');
  const centre = (from + to) / 2;
  const [begin, end] = isPoint
    ? [centre - BAR / 2, centre + BAR / 2]
    : [from, Math.max(to, from + MIN_BAR_WIDTH)];
  const shape = isPoint
    ? svgElement('path', { ...look, d: diamond(centre, middle) })
    : svgElement('rect', {
        ...look,
        x: begin,
        y: middle - BAR / 2,
        width: end - begin,
        height: BAR,
        rx: 4,
      });
  return shape + drawLabel(it.name, isPoint, [begin, end], middle, left);
}

const diamond = (x: number, y: number): string =>
  `M${x} ${y - BAR / 2} L${x + BAR / 2} ${y} L${x} ${y + BAR / 2} L${x - BAR / 2} ${y} Z`;

/** Places the label inside its bar if it fits, else on the side with more space. */
function drawLabel(
  name: string,
  isPoint: boolean,
  [begin, end]: readonly [number, number],
  y: number,
  left: number,
): string {
  const place = { y, 'dominant-baseline': 'central' };
  if (!isPoint && widthOf(name, WORDS) <= end - begin - 8) {
    return text({ ...place, x: (begin + end) / 2, 'text-anchor': 'middle' }, name);
  }
  const [before, behind] = [begin - left - 8, left + PLOT - end - 8];
  const isBehind = behind >= before || widthOf(name, WORDS) <= behind;
  const words = truncateToWidth(name, WORDS, isBehind ? behind + EDGE : before);
  return isBehind
    ? text({ ...place, x: end + 6 }, words)
    : text({ ...place, x: begin - 6, 'text-anchor': 'end' }, words);
}
