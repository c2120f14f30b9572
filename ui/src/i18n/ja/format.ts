import type { Messages } from '../types';

export const format: Messages['format'] = {
  speed: '{rate} トークン/秒',
  per_second: '{size}/秒',
  with_keys: '{label}（{keys}）',
  context_length: 'コンテキスト {length}',
  downloads: '{many} ダウンロード',
  key_ctrl: 'Ctrl',
  key_shift: 'Shift',
  key_space: 'Space',
  key_enter: 'Enter',
};
