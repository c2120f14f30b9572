/** What lies over everything: the palette, links, the list of keys, the page that could not be reached. */
export const shell = {
  let_go: 'Release to add to your models',
  link_to: 'Link to {host}',
  link_note: 'Check the address before you open it. Nothing has been loaded from it.',
  link_copy: 'Copy address',
  link_open: 'Open link',

  find_anything: 'Search everything',
  find_what: 'Search chats, messages, models and commands',
  found: 'Results',
  nothing_called: 'No results for “{query}”',
  chats: 'Chats',
  messages: 'Messages',
  models: 'Models',
  commands: 'Commands',
  help: 'Help',
  settings: 'Settings',
  in_use: 'active',

  closing: 'An answer is still being generated',
  closing_about:
    'Close now to keep what has been written so far, or let the window close when the answer is done.',
  closing_now: 'Stop and close',
  closing_finish: 'Close when done',
  closing_stay: 'Keep open',
  closing_waits: 'Inglenook closes when the answer is done.',

  tray_show: 'Show Inglenook',
  tray_quit: 'Quit',

  change_keys: 'Change shortcuts…',
  back_to_chat: 'Back to chat (Esc)',
  key: 'API key',
  enter: 'Sign in',

  preset_named: 'Preset “{name}”',
  settings_reset: {
    one: 'One setting reset to its default',
    other: '{n} settings reset to their defaults',
  },
} as const;
