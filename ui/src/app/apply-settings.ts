/** What settings do to the page itself. */
import { keymap, type CustomKeys } from '../shared/keymap.svelte';
import type { Inglenook } from './inglenook.svelte';
import { applyTheme, storedTheme } from './theme';
import { i18n, storedLanguage, t } from '../i18n';

let zoomed = 100;
/** The language that the menu beside the clock speaks; null: there is none. */
let trayIn: string | null = null;

export function applySettings(app: Inglenook): void {
  const { backend, settings } = app;
  const chosen = i18n.choose(settings.text('language', storedLanguage()));
  applyTheme(settings.text('theme', storedTheme()));
  keymap.custom = keysOf(settings.find('shortcuts')?.value);
  const zoom = settings.number('zoom', 100);
  if (zoom !== zoomed) void backend.setZoom?.(zoom / 100).catch(() => undefined);
  zoomed = zoom;
  void chosen.then(() => app.attempt(() => applyTray(app)));
}

async function applyTray({ backend, settings }: Inglenook): Promise<void> {
  const wanted = settings.on('tray') ? i18n.language : null;
  if (wanted === trayIn) return;
  trayIn = wanted;
  const labels = {
    show: t('shell.tray_show'),
    new_chat: t('commands.new-chat'),
    quit: t('shell.tray_quit'),
  };
  await backend.setTray?.(wanted === null ? null : labels);
}

/** The application keeps them as they were given; what isn't a list of keys is left out. */
function keysOf(value: unknown): CustomKeys {
  if (typeof value !== 'object' || value === null) return {};
  const entries = Object.entries(value).filter(([, keys]) => Array.isArray(keys));
  return Object.fromEntries(entries) as CustomKeys;
}
