/** The samplers DRY and XTC among a chat's options. */
import type { SamplerOptions } from '../../backend/bindings';

/** A number of a sampler, as its field shows it. */
export interface SamplerField {
  readonly key: Exclude<keyof SamplerOptions, 'dry_sequence_breakers'>;
  readonly min: number;
  readonly max: number | undefined;
  readonly step: number;
  /** What holds for an empty field. */
  readonly otherwise: number;
}

export const SAMPLER_FIELDS: readonly SamplerField[] = [
  { key: 'dry_multiplier', min: 0, max: 100, step: 0.1, otherwise: 0 },
  { key: 'dry_base', min: 1, max: 100, step: 0.05, otherwise: 1.75 },
  { key: 'dry_allowed_length', min: 0, max: undefined, step: 1, otherwise: 2 },
  { key: 'dry_penalty_last_n', min: -1, max: undefined, step: 1, otherwise: -1 },
  { key: 'xtc_probability', min: 0, max: 1, step: 0.05, otherwise: 0 },
  { key: 'xtc_threshold', min: 0, max: 1, step: 0.01, otherwise: 0.1 },
];

export const NO_SAMPLERS: SamplerOptions = {
  dry_multiplier: null,
  dry_base: null,
  dry_allowed_length: null,
  dry_penalty_last_n: null,
  dry_sequence_breakers: null,
  xtc_probability: null,
  xtc_threshold: null,
};

/** The options with one of them changed; null if none is left. */
export function withSampler<K extends keyof SamplerOptions>(
  options: SamplerOptions | null,
  key: K,
  value: SamplerOptions[K],
): SamplerOptions | null {
  const changed = { ...NO_SAMPLERS, ...options, [key]: value };
  return Object.values(changed).every((it) => it === null) ? null : changed;
}
