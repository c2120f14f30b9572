import type { Catalogue } from '../types';

export const errors: Catalogue['errors'] = {
  'ui.unreachable': {
    message: 'Inglenook reagiert nicht.',
    remedy: 'Prüfe, ob `nook serve` noch läuft, und versuch es dann noch einmal.',
  },
  'ui.unauthorized': {
    message: 'Diese Seite braucht den API-Schlüssel.',
    remedy:
      'Er wurde `nook serve` mit --api-key übergeben. Sonst steht er im Datenordner in keys/server.key.',
  },
  'app.closed': {
    message: 'Inglenook wurde geschlossen, während diese Antwort entstand.',
    remedy: 'Generiere sie neu, um eine vollständige Antwort zu erhalten.',
  },
  'attachment.scanned': {
    message: 'Die Seiten von {name} sind gescannt, und das Modell {model} sieht keine Bilder.',
    remedy:
      'Wähle ein Modell mit dem Kennzeichen „Bilder“, oder wende Texterkennung (OCR) auf die Datei an und hänge das Ergebnis an.',
  },
  'chat.cannot_continue': {
    message:
      'Ein Modell mit anderem Vokabular hat diese Antwort begonnen. Sie lässt sich deshalb nicht exakt fortsetzen.',
    remedy: 'Generiere sie stattdessen neu.',
  },
  'compress.no_place': {
    message: 'Der Speicher reicht nicht, um diesen Chat durch Vergessen von Token zu komprimieren.',
    remedy:
      'Versuch es noch einmal, wenn andere Antworten fertig sind, oder lass ältere Nachrichten aus.',
  },
  'compress.no_summary': {
    message: 'Das Modell hat keine Zusammenfassung geschrieben.',
    remedy: 'Lass stattdessen ältere Nachrichten aus (Einstellung „Wenn der Kontext voll ist“).',
  },
  'compress.nothing': {
    message: 'In diesem Chat gibt es noch nichts zusammenzufassen.',
    remedy: 'Ältere Nachrichten lassen sich zusammenfassen, sobald neuere folgen.',
  },
  'hub.busy': {
    message: 'Zu viele Anfragen an Hugging Face.',
    remedy:
      'Warte kurz und versuch es noch einmal. Laufende Downloads werden automatisch fortgesetzt.',
  },
  'import.backup': {
    message: 'Das ist ein vollständiges Backup, kein Export von Chats.',
    remedy: 'Stell es stattdessen wieder her (`nook restore DATEI` oder Einstellungen > Daten).',
  },
  'import.empty': {
    message: 'Diese Datei enthält keine Chats.',
    remedy: 'Wähle die conversations.json des Exports oder die ganze ZIP-Datei.',
  },
  'import.stopped': {
    message: 'Der Import wurde abgebrochen.',
    remedy: 'Es blieben keine Dateien zurück.',
  },
  'kv.memory_full': {
    message: 'Der Speicher für Kontexte ist voll.',
    remedy:
      'Warte, bis andere Antworten fertig sind, oder erhöhe in den Einstellungen den Speicher für Kontexte.',
  },
  'look.busy': {
    message: 'Das Modell antwortet gerade.',
    remedy: 'Versuch es noch einmal, wenn es fertig ist.',
  },
  'look.not_loaded': {
    message: 'Das Modell, das diese Antwort geschrieben hat, ist nicht geladen.',
    remedy: 'Sende ihm eine Nachricht und versuch es dann noch einmal.',
  },
  'model.nan_logits': {
    message: 'Die Ausgabe des Modells enthält ungültige Zahlen.',
    remedy: 'Seine Gewichte sind beschädigt. Lade das Modell erneut herunter.',
  },
  'model.removed': {
    message: 'Das Modell wurde entfernt, während es antwortete.',
    remedy: 'Wähle ein anderes Modell.',
  },
  'preset.no_name': { message: 'Die Vorlage braucht einen Namen.', remedy: 'Gib einen Namen ein.' },
  'session.busy': {
    message: 'Ein anderes Programm verwendet die Chat-Datenbank.',
    remedy: 'Schließ andere Inglenook-Fenster oder Backup-Programme und versuch es noch einmal.',
  },
  'session.damaged': {
    message:
      'Die Chat-Datenbank war beschädigt. {chats} Chats wurden wiederhergestellt. Es fehlen: {titles} Titel, mindestens {messages} Nachrichten; {places} Stellen waren nicht lesbar. Die beschädigte Datei liegt unter {file}.',
    remedy: 'Gelöscht wurde nichts. Behalte die Datei, falls etwas fehlt.',
  },
  'session.disk_full': {
    message: 'Die Festplatte ist voll. Es wurde nichts gespeichert.',
    remedy: 'Gib Speicherplatz frei und versuch es noch einmal.',
  },
  'session.empty': {
    message: 'Dieser Chat ist noch leer.',
    remedy: 'Schreib zuerst eine Nachricht.',
  },
  'session.index_rebuilt': {
    message:
      'Ein Index der Chat-Datenbank war beschädigt und wurde neu aufgebaut. Es fehlt nichts.',
    remedy: 'Versuch noch einmal, was fehlschlug. Passiert es wiederholt, prüf den Datenträger.',
  },
  'session.not_a_question': {
    message: 'Nur deine eigenen Nachrichten lassen sich bearbeiten und neu senden.',
    remedy: 'Generiere stattdessen die Antwort neu.',
  },
  'session.not_the_end': {
    message:
      'Nach dieser Antwort gibt es schon Nachrichten. Sie lässt sich deshalb nicht fortsetzen.',
    remedy: 'Generiere sie neu oder verzweige hier in einen neuen Chat.',
  },
  'session.nothing_to_retry': {
    message: 'Es gibt keine Nachricht, die neu beantwortet werden könnte.',
    remedy: 'Schreib zuerst eine Nachricht.',
  },
  'session.out_of_memory': {
    message: 'Der Arbeitsspeicher reicht für die Chat-Datenbank nicht aus.',
    remedy: 'Schließ andere Programme oder entlade das Modell, und versuch es noch einmal.',
  },
  'session.read_only': {
    message:
      'Der Datenträger ist voll oder der Datenordner ist schreibgeschützt. Deine Chats sind lesbar, aber Neues wird nicht gespeichert.',
    remedy:
      'Gib Speicherplatz frei oder prüf die Zugriffsrechte des Datenordners. Starte Inglenook dann neu.',
  },
  'shell.clipboard': {
    message: 'Das Programm, aus dem du das kopiert hast, hat es nicht herausgegeben.',
    remedy: 'Speichere es als Datei und hänge sie an.',
  },
  'shell.link': {
    message: 'Für diese Adresse ließ sich kein Programm öffnen.',
    remedy: 'Kopiere die Adresse und öffne sie selbst.',
  },
  'tools.form': {
    message: 'Ein Wert im Formular fehlt oder ist nicht erlaubt.',
    remedy: 'Korrigiere den Wert und sende das Formular noch einmal.',
  },
  'tools.form_closed': {
    message: 'Dieses Formular wartet nicht mehr.',
    remedy: 'Sende die Nachricht noch einmal.',
  },
  'tools.sign_in': {
    message: '{name} verlangt eine Anmeldung.',
    remedy: 'Melde dich unter Einstellungen > Tools an oder mit `nook tools sign-in`.',
  },
  'tools.sign_in_canceled': {
    message: 'Die Anmeldung bei {name} wurde abgebrochen.',
    remedy: 'Melde dich noch einmal an.',
  },
  'tools.sign_in_denied': {
    message: 'Du hast den Zugriff auf {name} nicht erlaubt.',
    remedy: 'Melde dich noch einmal an.',
  },
  'tools.sign_in_expired': {
    message: 'Deine Anmeldung bei {name} ist abgelaufen.',
    remedy: 'Melde dich noch einmal an.',
  },
  'tools.sign_in_timeout': {
    message: 'Die Anmeldung bei {name} wurde nicht innerhalb von {minutes} Minuten abgeschlossen.',
    remedy: 'Melde dich noch einmal an.',
  },
  'turn.unknown': {
    message: 'Diese Antwort entsteht hier nicht.',
    remedy: 'Öffne ihren Chat, um zu sehen, was geschrieben wurde.',
  },
  'update.busy': {
    message: 'Ein Update läuft bereits.',
    remedy:
      'Warte auf sein Ende, brich den Download ab, oder starte Inglenook neu, wenn es bereit ist.',
  },
  'update.by_hand': {
    message:
      'Dieses Inglenook kann sich nicht selbst ersetzen: Es wurde nicht mit seinem eigenen Installationsprogramm installiert.',
    remedy: 'Installiere die neue Version so, wie du diese installiert hast.',
  },
  'update.client': {
    message: 'Nach Updates kann nicht gesucht werden: {cause}.',
    remedy: 'Prüfe den Proxy in den Einstellungen und die Zertifikate des Systems.',
  },
  'update.download': {
    message: 'Der Download von {place} brach ab: {cause}.',
    remedy: 'Prüfe die Internetverbindung und den Proxy und versuch es dann noch einmal.',
  },
  'update.format': {
    message: '{place} hat keine Versionsliste gesendet: {cause}.',
    remedy: 'Versuch es später noch einmal. Diese Version funktioniert weiter.',
  },
  'update.install': {
    message: 'Die neue Version konnte nicht installiert werden: {cause}.',
    remedy:
      'Prüfe, ob du in den Ordner des Programms schreiben darfst und ob sein Datenträger Platz hat. Diese Version funktioniert weiter.',
  },
  'update.no_address': {
    message: 'Dieser Build von Inglenook hat keine Update-Adresse.',
    remedy: 'Hol eine neue Version dort, wo du diese herhast, oder baue sie aus dem Quelltext.',
  },
  'update.no_list': {
    message: '{place} hat keine Versionsliste.',
    remedy: 'Versuch es später noch einmal. Diese Version funktioniert weiter.',
  },
  'update.none': {
    message: 'Es ist keine neuere Version bekannt, die heruntergeladen werden könnte.',
    remedy: 'Such zuerst nach Updates.',
  },
  'update.not_here': {
    message: 'Inglenook wird in seinem eigenen Fenster aktualisiert.',
    remedy: 'Öffne das Fenster auf dem Computer, auf dem Inglenook läuft.',
  },
  'update.not_ready': {
    message: 'Keine heruntergeladene Version ist bereit zur Installation.',
    remedy: 'Such zuerst nach Updates und lade die neue Version herunter.',
  },
  'update.platform': {
    message: '{place} hat eine neuere Version, aber nicht für diese Art von Computer oder Paket.',
    remedy: 'Versuch es später noch einmal. Diese Version funktioniert weiter.',
  },
  'update.redirect': {
    message: 'Der Update-Server führt zu {place}, und das ist nicht verschlüsselt.',
    remedy: 'Prüfe das Netz, in dem du bist: Vielleicht verlangt es zuerst eine Anmeldung.',
  },
  'update.redirects': {
    message: 'Der Update-Server leitet zu oft weiter.',
    remedy: 'Prüfe das Netz, in dem du bist: Vielleicht verlangt es zuerst eine Anmeldung.',
  },
  'update.signature': {
    message: 'Die neue Version von {place} wurde abgelehnt: {cause}.',
    remedy:
      'Installiere sie nicht von Hand. Es wurde nichts geändert. Versuch es später noch einmal, oder melde es den Herausgebern von Inglenook.',
  },
  'update.too_large': {
    message: 'Das Update von {place} ist größer als {size} MB.',
    remedy: 'Das ist kein Paket von Inglenook. Versuch es später noch einmal.',
  },
  'update.unreachable': {
    message: '{place} ist nicht erreichbar.',
    remedy: 'Prüfe die Internetverbindung und den Proxy und versuch es dann noch einmal.',
  },
  'worker.file_gone': {
    message: 'Die Modelldatei wurde gekürzt oder unlesbar, während das Modell antwortete.',
    remedy: 'Prüfe das Laufwerk oder lade das Modell erneut herunter. Versuch es dann noch einmal.',
  },
  'worker.hung': {
    message: 'Der Inferenzprozess von Inglenook reagierte nicht mehr und wurde beendet.',
    remedy:
      'Versuch es noch einmal. Passiert es oft, wähle ein anderes Modell oder starte den Computer neu.',
  },
  'worker.killed': {
    message:
      'Das System hat den Inferenzprozess von Inglenook beendet, wahrscheinlich wegen Speichermangels.',
    remedy:
      'Schließ andere Programme, verkleinere in den Einstellungen die Kontextlänge oder wähle ein kleineres Modell. Versuch es dann noch einmal.',
  },
};
