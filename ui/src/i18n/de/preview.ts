import type { Messages } from '../types';

export const preview: Messages['preview'] = {
  open: 'Vorschau',
  title: 'Vorschau',
  close: 'Vorschau schließen',
  scripts: 'Skripte zulassen',
  about: 'Nichts wird aus dem Netz geladen, und keine Skripte laufen.',
  scripts_on:
    'Skripte laufen hier ohne Zugriff auf deine Chats oder das Netz. Ein fehlerhaftes kann das Fenster verlangsamen.',
};
