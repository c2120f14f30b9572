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

  closing: 'Eine Antwort entsteht noch',
  closing_about:
    'Schließt du jetzt, bleibt sie so weit, wie sie ist. Oder das Fenster schließt sich von selbst, sobald sie fertig ist.',
  closing_now: 'Anhalten und schließen',
  closing_finish: 'Fertig schreiben, dann schließen',
  closing_stay: 'Offen bleiben',
  closing_waits: 'Inglenook schließt sich, wenn die Antwort fertig ist.',

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
