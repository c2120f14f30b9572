/** What lies over everything: the palette, links, the list of keys, the page that could not be reached. */
export const shell = {
  let_go: 'Let go to add it to your models',
  link_to: 'A link to {host}',
  link_note: 'A model wrote this address. Nothing was loaded from it.',
  link_copy: 'Copy the address',
  link_open: 'Open in a new tab',

  find_anything: 'Find anything',
  find_what: 'Find a chat, a message, a model, a command',
  found: 'Found',
  nothing_called: 'Nothing is called “{query}”.',
  chats: 'Chats',
  messages: 'Messages',
  models: 'Models',
  commands: 'Commands',
  settings: 'Settings',
  in_use: 'in use',

  closing: 'An answer is still being written',
  closing_about:
    'Close now and it is kept as far as it is written. Or the window closes by itself once it is done.',
  closing_now: 'Stop and close',
  closing_finish: 'Finish it, then close',
  closing_stay: 'Stay open',
  closing_waits: 'Inglenook closes when the answer is done.',

  tray_show: 'Show Inglenook',
  tray_quit: 'Quit',

  change_keys: 'Change them…',
  back_to_chat: 'Back to the chat (Esc)',
  key: 'Key',
  enter: 'Enter',

  preset_named: 'Preset “{name}”',
  settings_reset: { one: 'One setting is as it came', other: '{n} settings are as they came' },
} as const;
