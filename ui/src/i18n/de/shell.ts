import type { Messages } from '../types';

export const shell: Messages['shell'] = {
  let_go: 'Loslassen, um es zu deinen Modellen hinzuzufügen',
  link_to: 'Link zu {host}',
  link_note: 'Prüfe die Adresse, bevor du sie öffnest. Es wurde nichts von dort geladen.',
  link_copy: 'Adresse kopieren',
  link_open: 'Link öffnen',

  find_anything: 'Alles durchsuchen',
  find_what: 'Chats, Nachrichten, Modelle und Befehle suchen',
  found: 'Ergebnisse',
  nothing_called: 'Keine Ergebnisse für „{query}“',
  chats: 'Chats',
  messages: 'Nachrichten',
  models: 'Modelle',
  commands: 'Befehle',
  help: 'Hilfe',
  settings: 'Einstellungen',
  in_use: 'aktiv',

  closing: 'Eine Antwort wird noch generiert',
  closing_about:
    'Wenn du jetzt schließt, bleibt der bisherige Text erhalten. Oder das Fenster schließt sich, sobald die Antwort fertig ist.',
  closing_now: 'Stoppen und schließen',
  closing_finish: 'Schließen, wenn fertig',
  closing_stay: 'Geöffnet lassen',
  closing_waits: 'Inglenook wird geschlossen, sobald die Antwort fertig ist.',

  tray_show: 'Inglenook anzeigen',
  tray_quit: 'Beenden',

  change_keys: 'Tastenkürzel ändern…',
  back_to_chat: 'Zurück zum Chat (Esc)',
  key: 'API-Schlüssel',
  enter: 'Anmelden',

  preset_named: 'Vorlage „{name}“',
  settings_reset: {
    one: 'Eine Einstellung zurückgesetzt',
    other: '{n} Einstellungen zurückgesetzt',
  },
};
