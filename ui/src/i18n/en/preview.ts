/** The preview of HTML and SVG. */
export const preview = {
  open: 'Preview',
  title: 'Preview',
  close: 'Close preview',
  scripts: 'Allow scripts',
  about: 'Nothing is loaded from the network, and no scripts run.',
  scripts_on:
    'Scripts run here without access to your chats or the network. A faulty one can slow the window down.',
} as const;
