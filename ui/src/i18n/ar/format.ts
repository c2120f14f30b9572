import type { Messages } from '../types';

export const format: Messages['format'] = {
  speed: '{rate} رمز/ث',
  per_second: '{size}/ث',
  with_keys: '{label} ({keys})',
  context_length: 'سياق {length}',
  downloads: '{many} تنزيل',
  key_ctrl: 'Ctrl',
  key_shift: 'Shift',
  key_space: 'Space',
  key_enter: 'Enter',
};
