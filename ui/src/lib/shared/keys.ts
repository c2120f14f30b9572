/** The shortcuts: one table from which keys are matched and the list for the user is made. */

export type CommandId =
  | 'new-chat'
  | 'toggle-sidebar'
  | 'settings'
  | 'model-picker'
  | 'stop'
  | 'focus-composer'
  | 'rename'
  | 'delete'
  | 'search'
  | 'regenerate'
  | 'edit-last'
  | 'options'
  | 'shortcuts';

export interface Shortcut {
  readonly id: CommandId;
  readonly label: string;
  /** `Mod` is Cmd on macOS and Ctrl elsewhere. */
  readonly keys: readonly string[];
}

export const SHORTCUTS: readonly Shortcut[] = [
  { id: 'new-chat', label: 'New chat', keys: ['Mod+N', 'Mod+Shift+O'] },
  { id: 'focus-composer', label: 'Go to the message box', keys: ['Shift+Escape'] },
  { id: 'stop', label: 'Stop the answer', keys: ['Escape'] },
  { id: 'model-picker', label: 'Choose a model', keys: ['Mod+Shift+M'] },
  { id: 'search', label: 'Search all messages', keys: ['Mod+K'] },
  { id: 'regenerate', label: 'Answer again', keys: ['Mod+R'] },
  { id: 'edit-last', label: 'Edit your last message', keys: ['ArrowUp'] },
  { id: 'options', label: 'System prompt and sampling of this chat', keys: ['Mod+Shift+B'] },
  { id: 'rename', label: 'Rename this chat', keys: ['F2'] },
  { id: 'delete', label: 'Delete this chat', keys: ['Mod+Shift+Backspace'] },
  { id: 'toggle-sidebar', label: 'Show or hide the sidebar', keys: ['Mod+B'] },
  { id: 'settings', label: 'Settings', keys: ['Mod+,'] },
  { id: 'shortcuts', label: 'This list', keys: ['Mod+/'] },
];

export const isMac = (): boolean => /mac|iphone|ipad/i.test(navigator.platform);

type KeyLike = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey'>;

export function commandFor(event: KeyLike, mac: boolean): CommandId | null {
  const hit = SHORTCUTS.find((it) => it.keys.some((keys) => matches(keys, event, mac)));
  return hit?.id ?? null;
}

export function matches(keys: string, event: KeyLike, mac: boolean): boolean {
  const parts = keys.split('+');
  const key = parts.at(-1) ?? '';
  const mod = mac ? event.metaKey : event.ctrlKey;
  const other = mac ? event.ctrlKey : event.metaKey;
  if (other || event.altKey || mod !== parts.includes('Mod')) return false;
  // On many keyboards `/` and `,` themselves need Shift.
  const shiftMatters = key.length > 1 || /[a-z]/i.test(key);
  if (shiftMatters && event.shiftKey !== parts.includes('Shift')) return false;
  return event.key.toLowerCase() === key.toLowerCase();
}

const NAMES: Record<string, string> = { Escape: 'Esc', Backspace: '⌫', ArrowUp: '↑' };
const MAC_NAMES: Record<string, string> = {
  Mod: '⌘',
  Shift: '⇧',
  Escape: 'esc',
  Backspace: '⌫',
  ArrowUp: '↑',
};

/** The keys as they stand on this computer's keyboard. */
export function keyNames(keys: string, mac: boolean): string[] {
  return keys.split('+').map((part) => {
    if (mac) return MAC_NAMES[part] ?? part;
    return part === 'Mod' ? 'Ctrl' : (NAMES[part] ?? part);
  });
}

/** For tooltips and `aria-keyshortcuts` neighbours: "New chat (Ctrl+N)". */
export function withKeys(label: string, id: CommandId, mac: boolean): string {
  const keys = SHORTCUTS.find((it) => it.id === id)?.keys[0];
  return keys ? `${label} (${keyNames(keys, mac).join(mac ? '' : '+')})` : label;
}

/** Whether this key press is text that a person meant for the message box. */
export function isTyping(event: KeyLike & { isComposing?: boolean }): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  return event.key.length === 1 && event.key !== ' ';
}
