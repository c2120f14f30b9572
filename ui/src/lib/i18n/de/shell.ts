import type { Messages } from '../types';

export const shell: Messages['shell'] = {
  let_go: 'Loslassen, um es zu deinen Modellen zu legen',
  link_to: 'Ein Link zu {host}',
  link_note: 'Diese Adresse hat ein Modell geschrieben. Von dort wurde nichts geladen.',
  link_copy: 'Adresse kopieren',
  link_open: 'In neuem Tab öffnen',

  find_anything: 'Alles finden',
  find_what: 'Chat, Nachricht, Modell oder Befehl finden',
  found: 'Gefunden',
  nothing_called: 'Nichts heißt „{query}“.',
  chats: 'Chats',
  messages: 'Nachrichten',
  models: 'Modelle',
  commands: 'Befehle',
  settings: 'Einstellungen',
  in_use: 'in Gebrauch',

  tray_show: 'Inglenook zeigen',
  tray_quit: 'Beenden',

  change_keys: 'Ändern …',
  back_to_chat: 'Zurück zum Chat (Esc)',
  key: 'Schlüssel',
  enter: 'Eintreten',

  preset_named: 'Vorlage „{name}“',
  settings_reset: {
    one: 'Eine Einstellung ist wie am Anfang',
    other: '{n} Einstellungen sind wie am Anfang',
  },
};
