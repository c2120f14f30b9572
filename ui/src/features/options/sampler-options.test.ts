import { describe, expect, it } from 'vitest';
import { NO_SAMPLERS, SAMPLER_FIELDS, withSampler } from './sampler-options';

describe('options of DRY and XTC', () => {
  it('are absent until one is set, and again when none is', () => {
    const one = withSampler(null, 'dry_multiplier', 0.8);
    expect(one).toEqual({ ...NO_SAMPLERS, dry_multiplier: 0.8 });
    const two = withSampler(one, 'dry_sequence_breakers', ['x']);
    expect(two).toEqual({ ...NO_SAMPLERS, dry_multiplier: 0.8, dry_sequence_breakers: ['x'] });
    expect(withSampler(one, 'dry_multiplier', null)).toBeNull();
    expect(withSampler(null, 'xtc_threshold', 0)).not.toBeNull();
  });

  it('have every number among the fields', () => {
    const keys = [...SAMPLER_FIELDS.map((it) => it.key), 'dry_sequence_breakers'];
    expect(keys.sort()).toEqual(Object.keys(NO_SAMPLERS).sort());
  });
});
