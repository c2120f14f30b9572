/** Applies settings to the page itself: language, theme, keys, zoom and the tray menu. */
import { keymap, type CustomKeys } from '../shared/keymap.svelte';
import type { Inglenook } from './inglenook.svelte';
import { applyLook, storedLook } from './theme';
import { reading } from '../shared/reading.svelte';
import { i18n, storedLanguage, t } from '../i18n';

let appliedZoom = 100;
/** Language of the tray menu; null while there is no tray icon. */
let trayLanguage: string | null = null;

export function applySettings(app: Inglenook): void {
  const { backend, settings } = app;
  const chosen = i18n.choose(settings.text('language', storedLanguage()));
  const look = storedLook();
  applyLook({
    theme: settings.text('theme', look.theme),
    accent: settings.text('accent', look.accent),
    textSize: settings.text('text_size', look.textSize),
  });
  reading.wrapsCode = settings.on('code_wrap');
  keymap.custom = parseCustomKeys(settings.find('shortcuts')?.value);
  const zoom = settings.number('zoom', 100);
  if (zoom !== appliedZoom) void backend.setZoom?.(zoom / 100).catch(() => undefined);
  appliedZoom = zoom;
  void chosen.then(() => app.attempt(() => applyTray(app)));
  void app.attempt(() => app.quickKeys.apply());
}

async function applyTray({ backend, settings }: Inglenook): Promise<void> {
  const wanted = settings.on('tray') ? i18n.language : null;
  if (wanted === trayLanguage) return;
  trayLanguage = wanted;
  const labels = {
    show: t('shell.tray_show'),
    new_chat: t('commands.new-chat'),
    quick: t('commands.quick-window'),
    quit: t('shell.tray_quit'),
  };
  await backend.setTray?.(wanted === null ? null : labels);
}

/** The application stores them unchecked, so values that are not lists of keys are dropped. */
function parseCustomKeys(value: unknown): CustomKeys {
  if (typeof value !== 'object' || value === null) return {};
  const entries = Object.entries(value).filter(([, keys]) => Array.isArray(keys));
  return Object.fromEntries(entries) as CustomKeys;
}
