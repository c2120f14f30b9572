import { describe, expect, it } from 'vitest';
import type { ModelEntry, ModelSkills, SettingRow } from '../../backend/bindings';
import { choicesFor, NOTHING, onceOf, onceSaid } from './one-off-options';
import { skillsOf } from '../models/model-summary';
import { numberRows } from '../options/number-rows';
import { serverSaid } from '../server/server-status';

const row = (key: string, label: string, kind: SettingRow['kind'], value: unknown) =>
  ({ key, label, help: '', section: '', group: '', kind, value, default: value }) as SettingRow;
const ROWS = [
  row('temperature', 'Temperature', { kind: 'number', min: 0, max: 2, step: 0.05 }, 0.7),
  row('seed', 'Seed', { kind: 'integer', min: 0, max: 99, absent: 'a new one' }, null),
  row(
    'reasoning_effort',
    'Effort',
    { kind: 'choice', options: [{ value: 'high', label: 'High' }] },
    'high',
  ),
];
const find = (key: string) => ROWS.find((it) => it.key === key);

const form = (values: Record<string, string>): FormData => {
  const data = new FormData();
  Object.entries(values).forEach(([key, value]) => data.set(key, value));
  return data;
};

describe('settings for one answer', () => {
  it('are what was filled in', () => {
    expect(onceOf(form({ temperature: '', top_p: ' ', effort: '' }))).toBeUndefined();
    expect(onceOf(form({ temperature: '0', seed: '7' }))).toEqual({
      ...NOTHING,
      temperature: 0,
      seed: 7,
    });
    expect(onceOf(form({ effort: 'high' }))).toEqual({ ...NOTHING, effort: 'high' });
  });

  it('are said by their names', () => {
    const once = { ...NOTHING, temperature: 1.2, seed: 0, effort: 'high', thinking: 'on' };
    expect(onceSaid(once, find)).toEqual(['Temperature 1.2', 'Seed 0', 'Effort High']);
    expect(onceSaid(NOTHING, find)).toEqual([]);
  });

  it.each<[ModelSkills['thinking'] | null, boolean, boolean, string[]]>([
    ['never', true, true, []],
    ['always', true, true, []],
    ['switched', false, false, ['thinking']],
    ['graded', false, false, ['effort']],
    [null, true, false, ['thinking']],
    [null, true, true, ['effort']],
    [null, false, false, []],
  ])('a model that thinks %s is told %s %s of %j', (thinking, either, efforts, expected) => {
    const skills = thinking && { tools: false, thinking };
    const counted = { can_think_or_not: either, has_efforts: efforts };
    expect(choicesFor(skills, counted).map((it) => it.key)).toEqual(expected);
  });

  it('are fields that may stay empty', () => {
    const rows = numberRows(['temperature', 'seed', 'top_p', 'reasoning_effort'], find);
    expect(rows.map((it) => [it.key, it.step, it.otherwise])).toEqual([
      ['temperature', 0.05, '0.7'],
      ['seed', 1, 'a new one'],
    ]);
  });
});

describe('what a model can do', () => {
  const names = (skills: ModelEntry['skills']) => skillsOf({ skills }).map((it) => it.name);

  it('is said in a word each', () => {
    expect(names({ tools: true, thinking: 'switched' })).toEqual(['Tools', 'Thinking']);
    expect(names({ tools: false, thinking: 'always' })).toEqual(['Thinking']);
    expect(names({ tools: false, thinking: 'never' })).toEqual([]);
    expect([names(null), names(undefined)]).toEqual([[], []]);
  });
});

it('the local server is said with its ports as they are typed', () => {
  expect(serverSaid({ state: 'off' })).toBe('Local server: off');
  expect(serverSaid({ state: 'running', ports: [8642, 9000] })).toBe(
    'Local server: running on port 8642, 9000',
  );
  expect(serverSaid({ state: 'failed', port: 8642 })).toContain('8642');
});
