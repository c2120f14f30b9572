import type { Catalogue } from '../types';

export const errors: Catalogue['errors'] = {
  'ui.unreachable': {
    message: 'Inglenook antwortet nicht.',
    remedy: 'Sieh nach, ob `nook serve` noch läuft, und versuch es dann noch einmal.',
  },
  'ui.unauthorized': {
    message: 'Diese Seite braucht den Schlüssel.',
    remedy:
      '`nook serve` bekam ihn mit --api-key; sonst liegt er im Datenordner, in keys/server.key.',
  },
  'app.closed': {
    message: 'Inglenook wurde geschlossen, während dies geschrieben wurde.',
    remedy: 'Frag noch einmal, um eine ganze Antwort zu bekommen.',
  },
  'chat.cannot_continue': {
    message:
      'Diese Antwort begann ein Modell mit anderen Token, deshalb lässt sie sich nicht genau fortsetzen.',
    remedy: 'Bitte stattdessen um eine andere Fassung.',
  },
  'compress.no_place': {
    message:
      'Es ist kein Speicher mehr da, in dem diese Unterhaltung teilweise vergessen werden könnte.',
    remedy:
      'Versuch es noch einmal, wenn andere Antworten fertig sind, oder lass ältere Nachrichten auslassen.',
  },
  'compress.no_summary': {
    message: 'Das Modell hat keine Zusammenfassung geschrieben.',
    remedy: 'Lass stattdessen ältere Nachrichten auslassen (Einstellung „Lange Unterhaltungen“).',
  },
  'compress.nothing': {
    message: 'In dieser Unterhaltung gibt es noch nichts zu falten.',
    remedy: 'Ältere Nachrichten lassen sich falten, sobald neuere auf sie folgen.',
  },
  'hub.busy': {
    message: 'Der Hub bittet uns zu warten: zu viele Anfragen.',
    remedy: 'Es geht von selbst weiter.',
  },
  'import.backup': {
    message: 'Das ist eine Sicherung von allem, kein Export von Unterhaltungen.',
    remedy: 'Spiel sie stattdessen zurück (`nook restore DATEI` oder Einstellungen, Daten).',
  },
  'import.broken': {
    message: 'Die Datei kam beschädigt von der Seite an.',
    remedy: 'Wähl sie noch einmal.',
  },
  'import.empty': {
    message: 'In dieser Datei ist keine Unterhaltung.',
    remedy: 'Wähl die conversations.json des Exports oder das ganze Zip.',
  },
  'import.stopped': {
    message: 'Der Import wurde angehalten.',
    remedy: 'Nichts blieb zurück.',
  },
  'kv.memory_full': {
    message: 'Der Speicher für Kontexte ist voll.',
    remedy:
      'Warte, bis andere Antworten fertig sind, oder gib Kontexten in den Einstellungen mehr Speicher.',
  },
  'look.busy': {
    message: 'Das Modell antwortet gerade.',
    remedy: 'Sieh noch einmal nach, wenn es fertig ist.',
  },
  'look.not_loaded': {
    message: 'Das Modell dieser Antwort ist nicht im Speicher.',
    remedy: 'Frag es etwas und sieh dann noch einmal nach.',
  },
  'model.nan_logits': {
    message: 'Die Ausgabe des Modells enthält Werte, die keine Zahlen sind.',
    remedy: 'Seine Gewichte sind beschädigt: Lade das Modell noch einmal herunter.',
  },
  'model.removed': {
    message: 'Das Modell wurde entfernt, während es antwortete.',
    remedy: 'Wähl ein anderes Modell.',
  },
  'preset.no_name': {
    message: 'Eine Vorlage braucht einen Namen.',
    remedy: 'Schreib einen Namen.',
  },
  'session.busy': {
    message: 'Ein anderes Programm hält die Datenbank der Unterhaltungen.',
    remedy: 'Schließ andere Inglenook-Fenster oder Sicherungsprogramme und versuch es noch einmal.',
  },
  'session.disk_full': {
    message: 'Die Platte ist voll, deshalb wurde dies nicht gespeichert.',
    remedy: 'Schaff Platz und versuch es noch einmal.',
  },
  'session.empty': {
    message: 'In dieser Unterhaltung ist noch nichts.',
    remedy: 'Schreib zuerst eine Nachricht.',
  },
  'session.not_a_question': {
    message: 'Nur eigene Nachrichten lassen sich neu schreiben.',
    remedy: 'Bitte stattdessen um eine andere Fassung der Antwort.',
  },
  'session.not_the_end': {
    message: 'Auf diese Antwort folgte schon etwas, deshalb lässt sie sich nicht fortsetzen.',
    remedy: 'Bitte um eine andere Fassung oder zweig hier ab.',
  },
  'session.nothing_to_retry': {
    message: 'Es gibt keine Frage, die noch einmal zu beantworten wäre.',
    remedy: 'Schreib zuerst eine Nachricht.',
  },
  'turn.unknown': {
    message: 'Diese Antwort wird hier nicht geschrieben.',
    remedy: 'Öffne ihre Unterhaltung: Was geschrieben wurde, steht dort.',
  },
  'worker.file_gone': {
    message:
      'Die Datei des Modells wurde gekürzt oder ließ sich nicht mehr lesen, während das Modell antwortete.',
    remedy:
      'Prüf das Laufwerk, auf dem sie liegt, oder lade das Modell noch einmal herunter; frag dann noch einmal.',
  },
  'worker.hung': {
    message: 'Der Teil von Inglenook, der Antworten berechnet, hing und wurde beendet.',
    remedy:
      'Frag noch einmal. Geschieht es oft, wähl ein anderes Modell oder starte den Computer neu.',
  },
  'worker.killed': {
    message:
      'Das System hat den Teil von Inglenook beendet, der Antworten berechnet, wahrscheinlich weil der Speicher ausging.',
    remedy:
      'Schließ andere Programme, verkürze den Kontext in den Einstellungen oder wähl ein kleineres Modell; frag dann noch einmal.',
  },
};
