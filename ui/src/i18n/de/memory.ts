import type { Messages } from '../types';

export const memory: Messages['memory'] = {
  about:
    'Notizen, die jeder Chat kennen soll. Sie sind Teil des Prompts, und der Kontext zeigt, wie viel sie belegen. Inglenook notiert nie etwas von selbst.',
  use: 'Notizen in Chats verwenden',
  note: 'Notiz',
  hint: 'Zum Beispiel: Ich verwende metrische Einheiten.',
  none: 'Noch keine Notizen. Schreib eine, oder wähle „Merken…“ im Menü einer Nachricht.',
  takes: {
    one: 'Die Notizen belegen {tokens} Token des Kontexts. So zeigen, wie das Modell sie bekommt',
    other: 'Die Notizen belegen {tokens} Token des Kontexts. So zeigen, wie das Modell sie bekommt',
  },
  remember: 'Merken…',
  remember_about:
    'Kürze dies auf das, was andere Chats wissen sollen. Nur was du hier speicherst, wird behalten.',
  saved: 'Im Gedächtnis gespeichert.',
  removed: 'Notiz gelöscht.',
  edit: 'Notiz bearbeiten',
  from: 'aus „{title}“',
  in_prompt: 'Notizen in diesem Prompt',
  choice_default: 'Wie in den Einstellungen',
  choice_on: 'Ein',
  choice_off: 'Aus',
};
