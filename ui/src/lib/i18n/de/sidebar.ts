import type { Messages } from '../types';

export const sidebar: Messages['sidebar'] = {
  conversations: 'Unterhaltungen',
  search: 'Suchen',
  search_all: 'Alle Nachrichten durchsuchen',
  pinned: 'Angeheftet',
  chosen: 'Ausgewählt',
  today: 'Heute',
  yesterday: 'Gestern',
  week: 'Diese Woche',
  month: 'Diesen Monat',
  older: 'Älter',
  empty: 'Deine Unterhaltungen werden hier aufbewahrt, auf diesem Computer.',
  answering: 'Antwortet',
  conversation: 'Unterhaltung',
  downloads: 'Downloads',

  folder: 'Ordner',
  folder_named: 'Ordner {name}',
  folder_more: 'Mehr für den Ordner „{name}“',
  folder_empty: 'Leer. Zieh einen Chat hierher oder nimm sein Menü.',
  folder_remove: 'Ordner entfernen, Chats behalten',

  pin: 'Anheften',
  unpin: 'Lösen',
  move: 'In einen Ordner …',
  move_out: 'Aus dem Ordner heraus',
  duplicate: 'Duplizieren',
  export_md: 'Markdown, zum Lesen',
  export_json: 'JSON, mit allen Fassungen',

  results: 'Suchergebnisse',
  results_none: 'Nichts gefunden',
  results_count: { one: '{n} Nachricht gefunden', other: '{n} Nachrichten gefunden' },
  no_message: 'Keine Nachricht hat diese Wörter.',

  chosen_chats: 'Ausgewählte Chats',
  chosen_count: '{n} ausgewählt',
  pin_them: 'Anheften',
  move_them: 'In einen Ordner verschieben',
  folders: 'Ordner',
  out_of_folders: 'Aus Ordnern heraus',
  delete_them: 'Löschen',
  choose_none: 'Auswahl aufheben (Esc)',
  title: 'Titel dieses Chats',

  trash_empty: 'Papierkorb leeren',
  trash_empty_sure: 'Papierkorb leeren?',
  trash_forget_sure: 'Endgültig löschen?',
  trash_note: 'Was hier liegt, geht nach 30 Tagen endgültig.',
  trash_none: 'Nichts hier. Was du löschst, bekommst du von hier zurück.',
  trash_all: {
    one: '{n} Unterhaltung ist danach nicht wiederzubekommen: Text, Suchindex und jede Sicherung, die sie enthält, werden von diesem Computer getilgt.',
    other:
      '{n} Unterhaltungen sind danach nicht wiederzubekommen: Text, Suchindex und jede Sicherung, die sie enthält, werden von diesem Computer getilgt.',
  },
  trash_one:
    '„{title}“ ist danach nicht wiederzubekommen: Text, Suchindex und jede Sicherung, die es enthält, werden von diesem Computer getilgt.',
  empty_now: 'Leeren',
};
