/** Maps key presses to commands, and formats keys. */
import { keymap } from './keymap.svelte';
import { SHORTCUTS, type CommandId } from './shortcuts';
import { t } from '../i18n';

export { SHORTCUTS, type CommandId, type Shortcut } from './shortcuts';

export const isMac = (): boolean => /mac|iphone|ipad/i.test(navigator.platform);

type KeyLike = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey'> & {
  code?: string;
};

export function commandFor(event: KeyLike, mac: boolean): CommandId | null {
  const hit = SHORTCUTS.find((it) => keymap.keysOf(it).some((keys) => matches(keys, event, mac)));
  return hit?.id ?? null;
}

/** Keys written by name, since their character is a separator. */
const NAMED: Record<string, string> = { '+': 'Plus', ' ': 'Space' };

/** Unshifted character of keys whose character changes with Shift. */
const BASE: Record<string, string> = {
  Semicolon: ';',
  Quote: "'",
  Comma: ',',
  Period: '.',
  Slash: '/',
  Minus: '-',
  Equal: '=',
};

export function matches(keys: string, event: KeyLike, mac: boolean): boolean {
  const parts = keys.split('+');
  const key = parts.at(-1) ?? '';
  const mod = mac ? event.metaKey : event.ctrlKey;
  const other = mac ? event.ctrlKey : event.metaKey;
  if (other || event.altKey !== parts.includes('Alt') || mod !== parts.includes('Mod')) {
    return false;
  }
  const shift = parts.includes('Shift');
  // On many keyboards, characters such as `/` need Shift.
  const isSign = key === 'Plus' || (key.length === 1 && !/[a-z]/i.test(key));
  if (shift ? !event.shiftKey : event.shiftKey && !isSign) return false;
  const pressed = NAMED[event.key] ?? event.key;
  if (pressed.toLowerCase() === key.toLowerCase()) return true;
  return shift && BASE[event.code ?? ''] === key;
}

const MODIFIERS = ['Control', 'Meta', 'Alt', 'Shift', 'AltGraph'];

/** Writes pressed keys in key map notation; null if they cannot be a shortcut. */
export function keyNotation(event: KeyLike, mac: boolean): string | null {
  const mod = mac ? event.metaKey : event.ctrlKey;
  if (MODIFIERS.includes(event.key) || (mac ? event.ctrlKey : event.metaKey)) return null;
  const isText = event.key.length === 1;
  // A key that types a letter cannot be a shortcut.
  if (isText && !mod && !event.altKey) return null;
  const base = event.shiftKey ? BASE[event.code ?? ''] : undefined;
  const letter = isText ? event.key.toUpperCase() : event.key;
  const key = base ?? NAMED[event.key] ?? letter;
  const isSign = isText && !/[a-z]/i.test(event.key) && base === undefined;
  const shift = event.shiftKey && !isSign;
  return [mod && 'Mod', event.altKey && 'Alt', shift && 'Shift', key].filter(Boolean).join('+');
}

/** Names of keys in the page's language. */
const WORDS: Record<string, () => string> = {
  Mod: () => t('format.key_ctrl'),
  Shift: () => t('format.key_shift'),
  Space: () => t('format.key_space'),
  Enter: () => t('format.key_enter'),
};

const NAMES: Record<string, string> = {
  Escape: 'Esc',
  Backspace: '⌫',
  ArrowUp: '↑',
  ArrowDown: '↓',
  ArrowLeft: '←',
  ArrowRight: '→',
  Plus: '+',
};
const MAC_NAMES: Record<string, string> = {
  ...NAMES,
  Enter: '↵',
  Mod: '⌘',
  Shift: '⇧',
  Alt: '⌥',
  Escape: 'esc',
};

/** Key labels for this computer's keyboard. */
export function keyNames(keys: string, mac: boolean): string[] {
  return keys.split('+').map((part) => {
    const name = mac ? MAC_NAMES[part] : NAMES[part];
    return name ?? WORDS[part]?.() ?? part;
  });
}

/** Keys as text: "Ctrl+N". */
export const keysShown = (keys: string, mac: boolean): string =>
  keyNames(keys, mac).join(mac ? '' : '+');

/** First shortcut of a command as text; empty if it has none. */
export function keysText(id: CommandId, mac: boolean): string {
  const keys = keymap.keysOfId(id)[0];
  return keys === undefined ? '' : keysShown(keys, mac);
}

/** A label with its shortcut: "New chat (Ctrl+N)". */
export function withKeys(label: string, id: CommandId, mac: boolean): string {
  const keys = keysText(id, mac);
  return keys ? t('format.with_keys', { label, keys }) : label;
}

/** Whether a key press is text meant for the message box. */
export function isTyping(event: KeyLike & { isComposing?: boolean }): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  return event.key.length === 1 && event.key !== ' ';
}
