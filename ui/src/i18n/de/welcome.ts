import type { Messages } from '../types';

export const welcome: Messages['welcome'] = {
  first_steps: 'Einführung',
  step_of: 'Schritt {at} von {n}',
  go_on: 'Weiter',
  start: 'Chat starten',

  title: 'Willkommen bei Inglenook',
  text: 'Eine warme Ecke am Kamin, um auf deinem eigenen Computer mit Sprachmodellen zu sprechen. Ein kleines Modell ist eingebaut: Du kannst sofort loslegen.',

  machine: 'Dieser Computer',
  machine_text: 'Modelle laufen auf der Hardware dieses Computers.',
  processor: 'CPU',
  cores: { one: '{n} Kern', other: '{n} Kerne' },
  runs_on_it: 'Führt jedes Modell aus.',
  runs_on_it_with: 'Führt jedes Modell aus, mit {isa}.',
  memory: 'Arbeitsspeicher',
  memory_decides: 'Begrenzt, wie groß ein Modell sein kann.',
  memory_free: 'Derzeit {size} für ein Modell verfügbar.',
  graphics: 'GPU',
  graphics_note: 'Modelle, die in ihren Speicher passen, antworten deutlich schneller.',

  model: 'Dein erstes Modell',
  model_text:
    'Das eingebaute Modell antwortet sofort, weiß aber wenig. Ein größeres weiß weit mehr und wird geladen, während du chattest.',
  answers_first: 'sofort bereit',
  on_its_way: 'Wird geladen',
  have_file: 'Ich habe schon eine Modelldatei:',

  privacy: 'Datenschutz',
  privacy_text: 'Alles bleibt auf diesem Computer, sofern du nichts anderes wählst.',
  words: 'Deine Chats',
  words_value: 'Bleiben auf diesem Computer',
  words_note: 'Kein Konto, keine Telemetrie, kein Training mit dem, was du schreibst.',
  network: 'Netzwerk',
  network_value: 'Nur wenn du es möchtest',
  network_note:
    'Zum Suchen und Herunterladen von Modellen wird das Netzwerk genutzt. Die Einstellungen zeigen jede Verbindung, und ein Schalter sperrt alle.',
  deleting: 'Löschen',
  deleting_value: 'Gelöscht heißt gelöscht',
  deleting_note:
    'Zehn Sekunden zum Rückgängigmachen, dreißig Tage im Papierkorb, danach bleibt nichts auf der Festplatte.',
};
