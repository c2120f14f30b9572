import type { Messages } from '../types';

export const format: Messages['format'] = {
  speed: '{rate} Token/s',
  per_second: '{size}/s',
  with_keys: '{label} ({keys})',
  context_length: '{length} Kontext',
  downloads: '{many} Downloads',
  key_ctrl: 'Strg',
  key_shift: 'Umschalt',
  key_space: 'Leertaste',
  key_enter: 'Eingabe',
};
