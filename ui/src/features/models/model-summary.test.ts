import { describe, expect, it } from 'vitest';
import type { ModelEntry } from '../../backend/bindings';
import { capabilitiesOf, settingOf } from './model-summary';

describe('what a model can do', () => {
  const names = (skills: ModelEntry['skills']) => capabilitiesOf({ skills }).map((it) => it.name);

  it('is said in a word each', () => {
    expect(names({ tools: true, thinking: 'switched', images: true, image_detail: true })).toEqual([
      'Images',
      'Tools',
      'Thinking',
    ]);
    expect(names({ tools: false, thinking: 'always', images: false, image_detail: false })).toEqual(
      ['Thinking'],
    );
    expect(names({ tools: false, thinking: 'never', images: false, image_detail: false })).toEqual(
      [],
    );
    expect([names(null), names(undefined)]).toEqual([[], []]);
  });
});

it('is selected by the setting of its kind', () => {
  expect(settingOf({ embeds: false, only_drafts: false })).toBe('model');
  expect(settingOf({ embeds: true, only_drafts: false })).toBe('embedding_model');
  expect(settingOf({ embeds: false, only_drafts: true })).toBe('draft_model');
});
