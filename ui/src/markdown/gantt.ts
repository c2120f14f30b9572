/** Parses Mermaid's Gantt charts: sections, and tasks with start and end. */
import { after, DAY, dateReader, inRange, type ReadDate } from './gantt-dates';
import { isSilent, readMermaid } from './mermaid-source';

export const MARKS = ['active', 'done', 'crit', 'milestone'] as const;
export type TaskMark = (typeof MARKS)[number];

export interface Task {
  readonly name: string;
  readonly section: string;
  readonly marks: readonly TaskMark[];
  readonly start: number;
  readonly end: number;
}

export interface Gantt {
  readonly title: string;
  /** Axis format as in d3; empty: chosen automatically. */
  readonly axis: string;
  readonly tasks: readonly Task[];
}

/** More tasks are no overview. */
const MAX_TASKS = 200;
/** Days of one task when excluded days are skipped one by one. */
const MAX_DAYS = 4000;

const WEEK = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'];
/** Statements that change only the appearance. */
const APPEARANCE = /^(?:axisFormat|tickInterval|todayMarker|weekday|topAxis|displayMode)\b/;

/** A task as written: its times may refer to other tasks. */
interface RawTask {
  readonly name: string;
  readonly section: string;
  readonly marks: readonly TaskMark[];
  readonly id: string;
  /** Empty: starts at the end of the previous task. */
  readonly start: string;
  readonly end: string;
}

interface GanttRules {
  readonly date: ReadDate;
  readonly excludes: readonly string[];
  /** End dates are inclusive. */
  readonly inclusive: boolean;
}

/** Null: unsupported or contradictory. */
export function readGantt(source: string): Gantt | null {
  const { lines, title } = readMermaid(source);
  if (lines[0] !== 'gantt') return null;
  const statements = new Map([['title', title]]);
  const tasks: RawTask[] = [];
  let [section, inclusive] = ['', false];
  for (const line of lines.slice(1)) {
    const [, word = '', rest = ''] = /^(\w+)(?:\s+(.*))?$/.exec(line) ?? [];
    if (['title', 'dateFormat', 'excludes', 'axisFormat'].includes(word))
      statements.set(word, rest);
    else if (word === 'section') section = rest;
    else if (word === 'inclusiveEndDates') inclusive = true;
    else if (!APPEARANCE.test(line) && !isSilent(line)) {
      const task = parseTask(line, section);
      if (!task || tasks.length === MAX_TASKS) return null;
      tasks.push(task);
    }
  }
  const date = dateReader(statements.get('dateFormat') ?? 'YYYY-MM-DD');
  const excludes = (statements.get('excludes') ?? '')
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean);
  const timed = date && resolveTimes(tasks, { date, excludes, inclusive });
  if (!timed || timed.length === 0) return null;
  return {
    title: statements.get('title') ?? '',
    axis: statements.get('axisFormat') ?? '',
    tasks: timed,
  };
}

function parseTask(line: string, section: string): RawTask | null {
  const colon = line.indexOf(':');
  const name = line.slice(0, colon).trim();
  if (colon < 0 || name === '') return null;
  const parts = line
    .slice(colon + 1)
    .split(',')
    .map((it) => it.trim());
  const marks: TaskMark[] = [];
  for (let mark = markOf(parts[0]); mark; mark = markOf(parts[0])) {
    marks.push(mark);
    parts.shift();
  }
  const [one = '', two = '', three = ''] = parts;
  const task = { name, section, marks };
  if (parts.length === 1) return { ...task, id: '', start: '', end: one };
  if (parts.length === 2) return { ...task, id: '', start: one, end: two };
  return parts.length === 3 ? { ...task, id: one, start: two, end: three } : null;
}

const markOf = (word: string | undefined): TaskMark | undefined => MARKS.find((it) => it === word);

/** Resolves times until nothing changes: tasks may refer to later ones. Null: some cannot be resolved. */
function resolveTimes(all: readonly RawTask[], rules: GanttRules): Task[] | null {
  const done = new Map<number, Task>();
  const find = (id: string): Task | undefined => done.get(all.findIndex((it) => it.id === id));
  for (let before = -1; before < done.size && done.size < all.length;) {
    before = done.size;
    for (const [at, { name, section, marks, ...task }] of all.entries()) {
      if (done.has(at)) continue;
      const start = startOf(task.start, done.get(at - 1), find, rules);
      const end = start === null ? null : endOf(task.end, start, find, rules);
      if (start !== null && end !== null && end >= start)
        done.set(at, { name, section, marks, start, end });
    }
  }
  const timed = all.map((_, at) => done.get(at)).filter((it) => it !== undefined);
  return timed.length === all.length ? timed : null;
}

type FindTask = (id: string) => Task | undefined;

const referencedIds = (text: string, word: 'after' | 'until'): string[] | null =>
  text.startsWith(`${word} `) ? text.slice(word.length).trim().split(/\s+/) : null;

function startOf(
  text: string,
  before: Task | undefined,
  find: FindTask,
  rules: GanttRules,
): number | null {
  if (text === '') return before?.end ?? null;
  const ids = referencedIds(text, 'after');
  if (!ids) return rules.date(text);
  const ends = ids.map((id) => find(id)?.end);
  return ends.includes(undefined) ? null : Math.max(...ends.map(Number));
}

function endOf(text: string, start: number, find: FindTask, rules: GanttRules): number | null {
  const ids = referencedIds(text, 'until');
  if (ids) {
    const starts = ids.map((id) => find(id)?.start);
    return starts.includes(undefined) ? null : Math.min(...starts.map(Number));
  }
  const date = rules.date(text);
  if (date !== null) return rules.inclusive ? inRange(date + DAY) : date;
  const end = after(start, text);
  return end === null ? null : skipExcludedDays(start, end, rules);
}

/** Extends the end by the excluded days. */
function skipExcludedDays(start: number, end: number, { excludes }: GanttRules): number | null {
  if (excludes.length === 0) return end;
  let last = end;
  for (let n = 0; start + n * DAY < last; n++) {
    if (n === MAX_DAYS) return null;
    if (isExcluded(start + n * DAY, excludes)) last += DAY;
  }
  return inRange(last);
}

function isExcluded(day: number, excludes: readonly string[]): boolean {
  const date = new Date(day);
  const name = WEEK[date.getUTCDay()] ?? '';
  const isWeekend = name === 'saturday' || name === 'sunday';
  if (isWeekend && excludes.includes('weekends')) return true;
  return excludes.includes(name) || excludes.includes(date.toISOString().slice(0, 10));
}
