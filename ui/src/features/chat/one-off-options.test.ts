import { describe, expect, it } from 'vitest';
import type { ModelSkills } from '../../backend/bindings';
import { NUMBER_AND_CHOICE_ROWS as ROWS } from '../../test/fixtures';
import {
  thinkingChoices,
  NO_OVERRIDES,
  readOneOffOptions,
  describeOneOffOptions,
} from './one-off-options';

const find = (key: string) => ROWS.find((it) => it.key === key);

const form = (values: Record<string, string>): FormData => {
  const data = new FormData();
  Object.entries(values).forEach(([key, value]) => data.set(key, value));
  return data;
};

describe('settings for one answer', () => {
  it('are what was filled in', () => {
    expect(readOneOffOptions(form({ temperature: '', top_p: ' ', effort: '' }))).toBeUndefined();
    expect(readOneOffOptions(form({ temperature: '0', seed: '7' }))).toEqual({
      ...NO_OVERRIDES,
      temperature: 0,
      seed: 7,
    });
    expect(readOneOffOptions(form({ effort: 'high' }))).toEqual({
      ...NO_OVERRIDES,
      effort: 'high',
    });
  });

  it('are said by their names', () => {
    const once = { ...NO_OVERRIDES, temperature: 1.2, seed: 0, effort: 'high', thinking: 'on' };
    expect(describeOneOffOptions(once, find)).toEqual(['Temperature 1.2', 'Seed 0', 'Effort High']);
    expect(describeOneOffOptions(NO_OVERRIDES, find)).toEqual([]);
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
    const skills = thinking && { tools: false, thinking, images: false, image_detail: false };
    const counted = { can_think_or_not: either, has_efforts: efforts };
    expect(thinkingChoices(skills, counted).map((it) => it.key)).toEqual(expected);
  });
});
