import type { Messages } from '../types';

export const files: Messages['files'] = {
  attach: 'Dateien anhängen',
  attached: 'Angehängte Dateien',
  of_message: 'Dateien dieser Nachricht',
  drop: 'Loslassen, um anzuhängen',
  drop_about:
    'Text, Code, PDF und CSV gehen mit deiner Nachricht; Exporte von Unterhaltungen werden eingelesen.',
  let_go: 'Loslassen, um es anzuhängen',

  gone: 'Nicht mehr da: bitte noch einmal anhängen.',
  reading: 'Wird gelesen …',
  text: 'Text',
  markdown: 'Markdown',
  code: 'Code',
  csv: 'CSV',
  pdf: 'PDF',
  searched: 'durchsucht',
  to_be_searched: 'wird durchsucht',
  named: '{name}: {detail}',
  remove: '{name} entfernen',

  hidden: {
    one: '{name} hat {n} verstecktes Zeichen ({names}); das Modell bekommt es als solches gezeigt.',
    other:
      '{name} hat {n} versteckte Zeichen ({names}); das Modell bekommt sie als solche gezeigt.',
  },
  instruction: '{name} spricht das Modell an: „{quote}“.',
  guessed: '{name} wurde als {encoding} gelesen: Sieh den Text an, wenn es auf Buchstaben ankommt.',

  pasted_name: 'Eingefügter Text.txt',
  pasted: 'Der lange Text, den du eingefügt hast, geht als Datei mit deiner Nachricht.',
  put_in: 'In die Nachricht setzen',

  sources: 'Quellen',
  all_sources: 'Alle {n}',
  whole: 'die ganze Datei',
  page: 'Seite {page}',
  line: 'Zeile {line}',
  lines: 'Zeilen {first}–{last}',

  content: 'Text der Datei',
  part: '{size}, ein Teil des Textes',
  earlier: 'Früherer Text',
  later: 'Späterer Text',

  from_here: 'Dateien …',
  from_server: 'Von {name} …',
  offered_by: 'Was {name} anbietet',
  asking_server: 'Der Server wird gefragt …',
  find_offered: 'Suchen',
  nothing_offered: 'Er bietet nichts zum Lesen an.',
  by_address: 'Nach Adresse',
  address: 'Adresse',
  attach_it: 'Anhängen',
  address_about: 'Ersetze die Wörter in geschweiften Klammern.',
};
