/** How figures and keys are written. */
export const format = {
  speed: '{rate} tok/s',
  per_second: '{size}/s',
  with_keys: '{label} ({keys})',
  context_length: '{length} context',
  downloads: '{many} downloads',
  key_ctrl: 'Ctrl',
  key_shift: 'Shift',
  key_space: 'Space',
  key_enter: 'Enter',
} as const;
