/** Basic settings: those that most people look for. All others are advanced. */
import type { SettingRow } from '../../backend/bindings';
import { isDefault } from '../../shared/setting-value';

export type SettingsLevel = 'basic' | 'advanced';

const BASIC = new Set([
  ...['model', 'language', 'start_with', 'titles', 'notify', 'tray'],
  ...['theme', 'accent', 'text_size', 'zoom', 'wide', 'code_wrap'],
  ...[
    'send_key',
    'prompts',
    'follow',
    'instructions',
    'memory',
    'temperature',
    'thinking',
    'thinking_open',
  ],
  ...['tools', 'download_place', 'idle_unload', 'context', 'backend'],
  ...['compression', 'context_disk', 'offline', 'data_dir'],
  ...['server_port', 'server_devices', 'server_start'],
]);

export const isBasic = (key: string): boolean => BASIC.has(key);

/** Rows of a level. A changed row is always shown, as is `wanted`, which another place opened. */
export function rowsOfLevel(
  rows: readonly SettingRow[],
  level: SettingsLevel,
  wanted: string | null,
): SettingRow[] {
  return rows.filter(
    (row) =>
      level === 'advanced' ||
      isBasic(row.key) ||
      row.key === wanted ||
      (row.kind.kind !== 'read_only' && !isDefault(row)),
  );
}
