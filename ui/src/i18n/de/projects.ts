import type { Messages } from '../types';

export const projects: Messages['projects'] = {
  of: 'Projekt „{name}“',
  about:
    'Neue Chats in diesem Ordner beginnen mit dem, was du hier einträgst. Bestehende Chats bleiben, wie sie sind.',
  instructions: 'Anweisungen',
  instructions_note:
    'Der System-Prompt neuer Chats. Leer: der der Vorlage oder die Standardanweisungen.',
  preset: 'Vorlage',
  model: 'Modell',
  model_default: 'Standardmodell',
  files: 'Dateien',
  files_note:
    'Sie gehen mit der ersten Nachricht jedes neuen Chats: ganz, wenn sie passen, sonst die Stellen, die zur Frage passen. Ihr Suchindex bleibt gespeichert.',
  n_files: { one: '{n} Datei', other: '{n} Dateien' },
  add: 'Dateien hinzufügen',
  remove: 'Projekt entfernen',
  remove_folder: 'Ordner „{name}“ mit seinem Projekt entfernen?',
  remove_folder_about:
    'Anweisungen und Dateien des Projekts werden gelöscht. Die Chats bleiben, mit den Dateien, die sie bekommen haben.',
  make: 'Zum Projekt machen…',
  open: 'Projekt bearbeiten…',
  new_chat: 'Neuer Chat hier',
  begins_in: 'Neuer Chat in „{name}“',
  given: 'aus dem Projekt',
};
