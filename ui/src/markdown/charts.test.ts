// @vitest-environment jsdom
import { describe, expect, it } from 'vitest';
import { axisTicks } from './gantt-axis';
import { readGantt } from './gantt';
import { after, dateReader } from './gantt-dates';
import { draw } from './diagram';
import { readPie } from './pie';
import { truncateToWidth, widthOf } from './svg';

const COLOURS = { bg: 'rgb(255, 253, 250)', fg: 'rgb(43, 35, 28)' };

function drawn(source: string): Document {
  const file = new DOMParser().parseFromString(draw(source, COLOURS) ?? '', 'image/svg+xml');
  expect(file.querySelector('parsererror')).toBeNull();
  return file;
}

const texts = (file: Document) => [...file.querySelectorAll('text')].map((it) => it.textContent);
const day = (ms: number | undefined) => new Date(ms ?? Number.NaN).toISOString().slice(0, 10);

describe('a pie', () => {
  it.each([
    ['pie\n "Oak" : 3\n "Ash" : 1', { title: '', showData: false }],
    ['pie title Wood of the year\n "Oak" : 3\n "Ash" : 1', { title: 'Wood of the year' }],
    ['pie showData\n title Wood\n "Oak" : 3\n "Ash" : 1', { title: 'Wood', showData: true }],
    ['pie\n showData\n %% a word\n\n \'Oak\': 3\n "Ash" :1.0', { showData: true }],
    ['---\ntitle: "Wood"\n---\npie\n accTitle: W\n "Oak": 3\n "Ash": 1', { title: 'Wood' }],
  ])('%s is read', (source, expected) => {
    const slices = [
      { label: 'Oak', value: 3 },
      { label: 'Ash', value: 1 },
    ];
    expect(readPie(source)).toMatchObject({ ...expected, slices });
  });

  it.each([
    'pie',
    'pie\n "Oak" : 0',
    'pie\n "Oak" : -1',
    'pie\n "Oak" : many',
    'pie\n Oak : 1',
    'piecemeal\n "Oak" : 1',
    `pie\n "Oak" : ${'9'.repeat(400)}`,
    `pie\n${'"Oak" : 1\n'.repeat(61)}`,
  ])('%s is refused', (source) => {
    expect(readPie(source)).toBeNull();
  });

  it('has a slice for each value, its share where there is room, and a legend', () => {
    const file = drawn('pie showData title Wood\n "Oak" : 6\n "Ash" : 3.9\n "Fir" : 0.1');
    expect(file.querySelectorAll('path.slice')).toHaveLength(3);
    expect(file.querySelectorAll('rect')).toHaveLength(3);
    expect(texts(file)).toEqual(['Wood', '60%', '39%', 'Oak [6]', 'Ash [3.9]', 'Fir [0.1]']);
  });

  it('of one value is a circle', () => {
    const file = drawn('pie\n "Oak" : 6');
    expect(file.querySelectorAll('circle.slice')).toHaveLength(1);
    expect(texts(file)).toEqual(['100%', 'Oak']);
  });

  it('shows what is said as it is said', () => {
    const label = `<b>&amp; "quotes'" </text> ]]>`;
    expect(texts(drawn(`pie\n '${label.replace("'", '’')}' : 6`))).toContain(
      label.replace("'", '’'),
    );
    expect(texts(drawn(`pie\n "${'long '.repeat(40)}" : 6`)).at(-1)).toMatch(/^long .*…$/);
  });
});

const times = (source: string) =>
  readGantt(source)?.tasks.map((it) => `${it.name} ${day(it.start)} ${day(it.end)}`) ?? null;

describe('a Gantt chart', () => {
  it.each([
    ['A: 2025-01-06, 3d', ['A 2025-01-06 2025-01-09']],
    ['A: 2025-01-06, 2025-01-08', ['A 2025-01-06 2025-01-08']],
    ['A: a, 2025-01-06, 1w\n B: 2d', ['A 2025-01-06 2025-01-13', 'B 2025-01-13 2025-01-15']],
    [
      'B: after a, 2d\n A: a, 2025-01-06, 1w',
      ['B 2025-01-13 2025-01-15', 'A 2025-01-06 2025-01-13'],
    ],
    [
      'A: a, 2025-01-06, 1d\n B: b, 2025-01-10, 1d\n C: after a b, 24h',
      ['A 2025-01-06 2025-01-07', 'B 2025-01-10 2025-01-11', 'C 2025-01-11 2025-01-12'],
    ],
    [
      'A: 2025-01-06, until b\n B: b, 2025-02-01, 1M',
      ['A 2025-01-06 2025-02-01', 'B 2025-02-01 2025-03-01'],
    ],
    ['dateFormat DD.MM.YYYY\n A: 06.01.2025, 3d', ['A 2025-01-06 2025-01-09']],
    ['inclusiveEndDates\n A: 2025-01-06, 2025-01-08', ['A 2025-01-06 2025-01-09']],
    ['excludes weekends\n A: 2025-01-03, 2d', ['A 2025-01-03 2025-01-07']],
    ['excludes 2025-01-07, friday\n A: 2025-01-06, 4d', ['A 2025-01-06 2025-01-12']],
    [
      'tickInterval 1week\n todayMarker off\n click a href "x"\n A: 2025-01-06, 1d',
      ['A 2025-01-06 2025-01-07'],
    ],
  ])('%s is read', (lines, expected) => {
    expect(times(`gantt\n ${lines}`)).toEqual(expected);
  });

  it('has sections, and marks of tasks', () => {
    const chart = readGantt(
      'gantt\n title Wood\n axisFormat %d\n A: 2025-01-06, 1d\n section Yard\n B: done, crit, b, 2025-01-06, 1d\n C: milestone, 0d',
    );
    expect(chart).toMatchObject({ title: 'Wood', axis: '%d' });
    expect(chart?.tasks.map((it) => [it.section, it.marks])).toEqual([
      ['', []],
      ['Yard', ['done', 'crit']],
      ['Yard', ['milestone']],
    ]);
  });

  it.each([
    '',
    'A: 1d',
    'A',
    ': 2025-01-06, 1d',
    'A: 2025-01-06',
    'A: 2025-02-30, 1d',
    'A: 2025-01-06, 2025-01-01',
    'A: a, after b, 1d\n B: b, after a, 1d',
    'A: a, b, c, d',
    'dateFormat QQ\n A: 2025-01-06, 1d',
    'A: 2025-01-06, 99999y',
    'A: 2025-01-06, 1parsec',
    'excludes weekends\n A: 2025-01-06, 900y',
    'excludes monday tuesday wednesday thursday friday weekends\n A: 2025-01-06, 1d',
    'A: 2025-01-06, 1d\n'.repeat(201),
  ])('%s is refused', (lines) => {
    expect(readGantt(`gantt\n ${lines}`)).toBeNull();
  });

  it('is a bar for each task, a point for a milestone, a band for each section, and time', () => {
    const file = drawn(
      'gantt\n title Wood\n section Yard\n Split: done, 2025-01-06, 10d\n Stack: active, crit, 5d\n section House\n Fire: milestone, 0d',
    );
    expect(file.querySelectorAll('rect.task')).toHaveLength(2);
    expect(file.querySelectorAll('rect.done')).toHaveLength(1);
    expect(file.querySelectorAll('rect.active.crit')).toHaveLength(1);
    expect(file.querySelectorAll('path.milestone')).toHaveLength(1);
    expect(file.querySelectorAll('[class^=band]')).toHaveLength(2);
    const said = texts(file);
    expect(said).toEqual(
      expect.arrayContaining(['Wood', 'Yard', 'House', 'Split', 'Stack', 'Fire']),
    );
    expect(said.filter((it) => /^2025-01-\d\d$/.test(it)).length).toBeGreaterThan(1);
    for (const it of file.querySelectorAll('rect, line, text')) {
      for (const { value } of it.attributes) expect(value).not.toMatch(/NaN|Infinity|undefined/);
    }
  });
});

describe('time', () => {
  it.each([
    ['YYYY-MM-DD HH:mm', '2025-03-01 09:30', '2025-03-01T09:30:00.000Z'],
    ['DD/MM/YY', '01/03/25', '2025-03-01T00:00:00.000Z'],
    ['HH:mm:ss', '09:30:01', '2000-01-01T09:30:01.000Z'],
    ['X', '86400', '1970-01-02T00:00:00.000Z'],
    ['D.M.YYYY', '2025-03-01T10:00', '2025-03-01T10:00:00.000Z'],
  ])('%s reads %s', (format, text, expected) => {
    expect(new Date(dateReader(format)?.(text) ?? 0).toISOString()).toBe(expected);
  });

  it.each([
    ['2025-01-31', '1M', '2025-02-28'],
    ['2024-02-29', '1y', '2025-02-28'],
    ['2025-01-01', '1.5d', '2025-01-02'],
  ])('%s and %s is %s', (start, duration, expected) => {
    expect(day(after(Date.parse(start), duration) ?? undefined)).toBe(expected);
  });

  it.each([
    [
      '2025-01-01T00:00',
      '2025-01-01T05:00',
      5,
      '',
      ['00:00', '01:00', '02:00', '03:00', '04:00', '05:00'],
    ],
    ['2025-01-01', '2025-02-01', 5, '', ['2025-01-06', '2025-01-13', '2025-01-20', '2025-01-27']],
    ['2024-11-15', '2025-04-01', 6, '', ['2024-12', '2025-01', '2025-02', '2025-03', '2025-04']],
    ['1850-01-01', '2350-01-01', 6, '', ['1900', '2000', '2100', '2200', '2300']],
    ['2025-01-01', '2025-01-03', 4, '%d %b', ['01 Jan', '02 Jan', '03 Jan']],
    ['2025-01-01', '2025-01-03', 3, '%Q', ['2025-01-01', '2025-01-02', '2025-01-03']],
  ])('from %s to %s it is marked', (from, to, most, format, expected) => {
    const at = (text: string) => Date.parse(text.includes('T') ? `${text}Z` : text);
    expect(axisTicks(at(from), at(to), most, format).map((it) => it.label)).toEqual(expected);
  });

  it('is never marked without end', () => {
    for (const [from, to] of [
      ['0001-01-01', '9999-12-31'],
      ['2025-01-01T00:00:00.000Z', '2025-01-01T00:00:00.001Z'],
    ] as const) {
      expect(axisTicks(Date.parse(from), Date.parse(to), 6, '').length).toBeLessThanOrEqual(8);
    }
  });
});

describe('letters', () => {
  it('are cut where there is no more room', () => {
    expect(truncateToWidth('Birch', 10, 100)).toBe('Birch');
    expect(truncateToWidth('Birch wood', 10, 40)).toBe('Birch…');
    expect(widthOf('白樺', 10)).toBe(20);
  });
});
