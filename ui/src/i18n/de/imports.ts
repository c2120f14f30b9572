import type { Messages } from '../types';

export const imports: Messages['imports'] = {
  named: '{name}: {why}',
  cut_off: 'Der Chat ist abgeschnitten; vielleicht ist der Download unvollständig.',
  too_large: 'Der Chat ist zu groß.',
  not_json: 'Der Chat ist kein gültiges JSON.',
  no_messages: 'Der Chat hat keine Nachrichten.',
  cycle: '{n} Nachrichten, die im Kreis aufeinander verweisen, fehlen.',
  no_sender: 'Nachricht {n} hat keinen Absender und fehlt.',
  unknown_sender: 'Nachricht {n} hat den unbekannten Absender „{sender}“ und fehlt.',
  no_chat: 'Das ist kein Chat.',
  unknown_format:
    'Das Exportformat ist unbekannt. Inglenook importiert sein eigenes JSON und die Exporte von ChatGPT und Claude, auch als ZIP-Datei.',
  incomplete: 'Der Chat ist unvollständig.',
  no_conversations: 'Diese ZIP-Datei enthält keine conversations.json.',
  unreadable_zip: 'Diese ZIP-Datei ist nicht lesbar ({cause}).',
  empty_file: 'Diese Datei ist leer.',
  foreign_format: 'Das Format {format} ist unbekannt.',
  newer: 'Dieser Export hat Version {version}; dieses Inglenook liest Versionen bis {known}.',
  own_incomplete: 'Dieser Export von Inglenook ist unvollständig.',
  unreadable_file: 'Diese Datei ist nicht lesbar ({cause}).',
  arrived_damaged: 'Die Datei kam beschädigt an.',
  others_imported: 'Die anderen Chats der Datei wurden importiert.',
  other_messages_imported: 'Die anderen Nachrichten des Chats wurden importiert.',
  export_again:
    'Exportiere die Chats noch einmal aus der App, aus der sie stammen, oder lade die Datei noch einmal herunter.',
  download_again: 'Lade sie noch einmal herunter.',
  choose_json: 'Wähle einen JSON-Export oder die ZIP-Datei, die ihn enthält.',
  choose_zip: 'Wähle die ZIP-Datei genau so, wie du sie von ChatGPT oder Claude bekommen hast.',
  update: 'Aktualisiere Inglenook.',
  check_drive: 'Prüf den Datenträger, auf dem sie liegt, und versuch es noch einmal.',
  zip_again:
    'Vielleicht ist der Download unvollständig. Lade sie noch einmal herunter, oder entpack sie und wähle conversations.json.',
  choose_again: 'Wähle sie noch einmal.',
};
