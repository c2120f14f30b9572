import type { Messages } from '../types';

export const files: Messages['files'] = {
  attach: 'Dateien anhängen',
  attached: 'Angehängte Dateien',
  of_message: 'Dateien dieser Nachricht',
  drop: 'Zum Anhängen ablegen',
  drop_about:
    'Bilder, Text, Office-Dateien, Bücher, Code, PDF und CSV werden an deine Nachricht angehängt. Chat-Exporte werden importiert.',
  let_go: 'Loslassen zum Anhängen',

  gone: 'Nicht mehr verfügbar. Bitte erneut anhängen.',
  reading: 'Wird gelesen…',
  text: 'Text',
  markdown: 'Markdown',
  code: 'Code',
  csv: 'CSV',
  pdf: 'PDF',
  image: 'Bild',
  document: 'Dokument',
  spreadsheet: 'Tabelle',
  presentation: 'Präsentation',
  use_seeing: '{name} verwenden',
  without_images: 'Bilder entfernen',
  loading_image: 'Das Bild wird geladen…',
  previous_image: 'Vorheriges Bild',
  next_image: 'Nächstes Bild',
  searched: 'durchsucht',
  to_be_searched: 'wird beim Senden durchsucht',
  named: '{name}: {detail}',
  open: 'Text von {name} anzeigen',
  remove: '{name} entfernen',

  hidden: {
    one: '{name} enthält {n} unsichtbares Zeichen ({names}). Das Modell bekommt es als sichtbaren Text.',
    other:
      '{name} enthält {n} unsichtbare Zeichen ({names}). Das Modell bekommt sie als sichtbaren Text.',
  },
  instruction: '{name} enthält Anweisungen an das Modell: „{quote}“.',
  partly_unreadable: 'teilweise unlesbar',
  scanned: {
    one: '{n} gescannte Seite, als Bild gelesen',
    other: '{n} gescannte Seiten, als Bilder gelesen',
  },
  scanned_unseen: {
    one: '{n} gescannte Seite, nicht gelesen: Dieses Modell sieht keine Bilder',
    other: '{n} gescannte Seiten, nicht gelesen: Dieses Modell sieht keine Bilder',
  },
  scanned_left_out: {
    one: '{n} weitere gescannte Seite nicht gelesen',
    other: '{n} weitere gescannte Seiten nicht gelesen',
  },
  scanned_no_room: {
    one: '{n} gescannte Seite weggelassen: kein Platz im Prompt',
    other: '{n} gescannte Seiten weggelassen: kein Platz im Prompt',
  },
  unreadable:
    '{name} ist teilweise unlesbar: Etwa {percent} % der Buchstaben ließen sich nicht entschlüsseln. Prüfe den Text, oder wende Texterkennung (OCR) an und hänge das Ergebnis an.',
  guessed: '{name} wurde als {encoding} gelesen. Prüfe den Text, falls Zeichen falsch aussehen.',

  pasted_name: 'Eingefügter Text.txt',
  pasted_image: 'Eingefügtes Bild',
  pasted: 'Der lange Text, den du eingefügt hast, wird als Datei angehängt.',
  put_in: 'In die Nachricht einfügen',

  sources: 'Quellen',
  all_sources: 'Alle {n}',
  whole: 'ganze Datei',
  page: 'Seite {page}',
  line: 'Zeile {line}',
  lines: 'Zeilen {first}–{last}',

  content: 'Text der Datei',
  part: '{size}, Teil des Textes',
  earlier: 'Vorheriger Teil',
  later: 'Nächster Teil',

  from_here: 'Dateien…',
  from_server: 'Von {name}…',
  offered_by: 'Ressourcen von {name}',
  asking_server: 'Ressourcen werden geladen…',
  find_offered: 'Suchen',
  nothing_offered: 'Dieser Server bietet keine Ressourcen an.',
  by_address: 'Per Adresse',
  address: 'Adresse',
  attach_it: 'Anhängen',
  address_about: 'Ersetze die Wörter in geschweiften Klammern.',
};
