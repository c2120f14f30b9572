import type { Messages } from '../types';

export const welcome: Messages['welcome'] = {
  first_steps: 'Erste Schritte',
  step_of: 'Schritt {at} von {n}',
  go_on: 'Weiter',
  start: 'Loslegen',

  title: 'Willkommen bei Inglenook',
  text: 'Die warme Ecke am Kamin, um auf dem eigenen Computer mit Sprachmodellen zu reden. Ein kleines Modell ist eingebaut: Gleich kannst du ihm schreiben.',

  machine: 'Dieser Computer',
  machine_text: 'Modelle laufen hier, auf dem, was eingebaut ist.',
  processor: 'Prozessor',
  cores: { one: '{n} Kern', other: '{n} Kerne' },
  runs_on_it: 'Jedes Modell läuft darauf.',
  runs_on_it_with: 'Jedes Modell läuft darauf, mit {isa}.',
  memory: 'Arbeitsspeicher',
  memory_decides: 'Entscheidet, wie groß ein Modell sein kann.',
  memory_free: 'Ein Modell kann davon jetzt {size} haben.',
  graphics: 'Grafikkarte',
  graphics_note: 'Modelle, die in ihren Speicher passen, antworten viel schneller.',

  model: 'Dein erstes Modell',
  model_text:
    'Das eingebaute antwortet sofort und weiß ein wenig. Ein größeres weiß weit mehr und kommt, während ihr euch unterhaltet.',
  answers_first: 'antwortet zuerst',
  on_its_way: 'Unterwegs',
  have_file: 'Ich habe schon eine Modelldatei:',

  privacy: 'Was hier bleibt',
  privacy_text: 'Alles, außer du möchtest es anders.',
  words: 'Deine Worte',
  words_value: 'Bleiben auf diesem Computer',
  words_note: 'Kein Konto, keine Telemetrie, kein Training mit dem, was du schreibst.',
  network: 'Das Netz',
  network_value: 'Nur, wenn du es sagst',
  network_note:
    'Modelle zu suchen und zu holen geht nach draußen. Die Einstellungen führen jede Verbindung auf, und ein Schalter beendet sie alle.',
  deleting: 'Löschen',
  deleting_value: 'Löscht wirklich',
  deleting_note:
    'Zehn Sekunden zum Rückgängigmachen, dreißig Tage im Papierkorb, dann ist nichts mehr auf der Platte.',
};
