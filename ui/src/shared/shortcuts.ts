/** All commands with their default keys. Their names are the texts `commands.<id>`. */

export type CommandId =
  | 'new-chat'
  | 'temporary-chat'
  | 'focus-composer'
  | 'stop'
  | 'regenerate'
  | 'edit-last'
  | 'copy-answer'
  | 'copy-code'
  | 'print'
  | 'tool-allow'
  | 'tool-deny'
  | 'options'
  | 'next-preset'
  | 'instruments'
  | 'palette'
  | 'search'
  | 'find'
  | 'next-chat'
  | 'previous-chat'
  | 'rename'
  | 'delete'
  | 'new-folder'
  | 'trash'
  | 'memory'
  | 'fine-tuning'
  | 'model-picker'
  | 'models'
  | 'chat'
  | 'toggle-sidebar'
  | 'settings'
  | 'shortcuts'
  | 'help'
  | 'zoom-in'
  | 'zoom-out'
  | 'zoom-reset'
  | 'quick-window';

export type CommandGroup = 'chat' | 'conversations' | 'models' | 'window' | 'anywhere';

export interface Shortcut {
  readonly id: CommandId;
  readonly group: CommandGroup;
  /** `Mod` is Cmd on macOS and Ctrl elsewhere. */
  readonly keys: readonly string[];
}

const of = (
  group: CommandGroup,
  list: readonly (readonly [CommandId, ...string[]])[],
): Shortcut[] => list.map(([id, ...keys]) => ({ id, group, keys }));

export const SHORTCUTS: readonly Shortcut[] = [
  ...of('chat', [
    ['new-chat', 'Mod+N', 'Mod+Shift+O'],
    ['temporary-chat', "Mod+Shift+'"],
    ['focus-composer', 'Shift+Escape'],
    ['stop', 'Escape'],
    ['regenerate', 'Mod+R'],
    ['edit-last', 'ArrowUp'],
    ['copy-answer', 'Mod+Shift+C'],
    ['copy-code', 'Mod+Shift+;'],
    ['print', 'Mod+P'],
    ['tool-allow', 'Mod+Alt+Enter'],
    ['tool-deny', 'Mod+Alt+Backspace'],
    ['options', 'Mod+Shift+B'],
    ['next-preset', 'Mod+J'],
    ['instruments', 'Mod+I'],
  ]),
  ...of('conversations', [
    ['palette', 'Mod+K'],
    ['search', 'Mod+Shift+F'],
    ['find', 'Mod+F'],
    ['next-chat', 'Alt+ArrowDown'],
    ['previous-chat', 'Alt+ArrowUp'],
    ['rename', 'F2'],
    ['delete', 'Mod+Shift+Backspace'],
    ['new-folder', 'Mod+Shift+N'],
    ['trash'],
    ['memory'],
  ]),
  ...of('models', [['model-picker', 'Mod+Shift+M'], ['models', 'Mod+2'], ['fine-tuning']]),
  ...of('window', [
    ['chat', 'Mod+1'],
    ['toggle-sidebar', 'Mod+B'],
    ['settings', 'Mod+,'],
    ['shortcuts', 'Mod+/'],
    ['help', 'Mod+Shift+/'],
    ['zoom-in', 'Mod+Plus', 'Mod+='],
    ['zoom-out', 'Mod+-'],
    ['zoom-reset', 'Mod+0'],
  ]),
  // Works while another program has the focus, so it is off until it is set.
  ...of('anywhere', [['quick-window']]),
];
