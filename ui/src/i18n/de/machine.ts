/** The settings of GPUs, contexts, limits, downloads, the network, tools and attachments. */
import type { Catalogue } from '../types';

export const machine: Catalogue['settings'] = {
  backend: {
    label: 'Berechnen auf',
    help: 'Automatisch nutzt eine GPU, wo sie nachweislich schneller ist als die CPU. GPU-Kernel werden beim ersten Einsatz mit einem Treiber geprüft; fällt eine GPU aus, übernimmt die CPU.',
    options: { auto: 'Automatisch', cpu: 'CPU', gpu: 'GPU' },
  },
  gpu_layers: {
    label: 'GPU-Schichten',
    help: 'Anzahl der Schichten eines Modells, die GPUs berechnen. Die CPU berechnet den Rest. Den Speicherbedarf zeigen die Details des Modells.',
    absent: 'so viele wie passen',
  },
  gpu_memory: {
    label: 'GPU-Speicherlimit (MB)',
    help: 'Speicher, den ein Modell auf jeder GPU belegen darf.',
    absent: 'das meiste',
  },
  gpu_precision: {
    label: 'GPU-Genauigkeit',
    help: 'Genauigkeit der Matrixmultiplikationen auf der GPU. „Automatisch“ verarbeitet Prompts mit 16 Bit auf Tensor-Kernen, wo eine GPU sie hat, und damit um ein Mehrfaches schneller. Antworten werden mit 32 Bit berechnet und hängen leicht davon ab, ob beim Lesen des Prompts andere Antworten liefen. „16 Bit“ rundet beides, mit weit kleinerem Fehler als die Ganzzahlen der CPU. Modi, die eine GPU nicht oder falsch berechnet, werden übersprungen.',
    options: {
      auto: 'Automatisch',
      f32: '32 Bit',
      f16: '16 Bit',
      matrices: 'Prompts mit 16 Bit auf Tensor-Kernen',
    },
  },
  gpu_devices: {
    label: 'Verwendete GPUs',
    help: 'Nummern oder Teile von Namen aus `nook devices`, durch Kommas getrennt.',
    placeholder: 'die beste verfügbare',
  },
  gpu_spread: {
    label: 'Mehrere GPUs',
    help: 'Mit dem ganzen Modell auf jeder GPU verteilen sich die Chats: Gleichzeitige Antworten kommen früher, und fällt eine GPU aus, laufen die anderen weiter. Mit geteilten Schichten passen größere Modelle.',
    options: {
      auto: 'Ganzes Modell auf jeder, wenn es passt',
      layers: 'Schichten auf GPUs aufteilen',
      copies: 'Immer das ganze Modell auf jeder',
    },
  },
  context_store_every: {
    label: 'Kontext speichern alle (Antworten)',
    help: 'Speichert den Kontext eines Chats auf der Festplatte, damit er nach einem Neustart sofort weitergeht.',
    absent: 'nie',
  },
  context_disk: {
    label: 'Festplattenplatz für Kontexte (MB)',
    help: 'Ist er voll, werden die am längsten nicht genutzten Kontexte entfernt. Nachrichten gehen nie verloren.',
  },
  idle_memory: {
    label: 'Speicher für inaktive Kontexte (MB)',
    help: 'Pro Modell, für Chats, in denen gerade nichts generiert wird.',
  },
  idle_minutes: {
    label: 'Inaktive Kontexte entladen nach (Minuten)',
    help: 'Sie werden zuerst auf der Festplatte gespeichert und mit der nächsten Nachricht wieder geladen.',
    absent: 'wenn Speicher gebraucht wird',
  },
  limits: {
    label: 'Limits',
    help: '„Streng“ eignet sich für Server, die Fremden offenstehen: Prompts bis 2.048 Token und 10.000 Zeichen, Antworten bis 512 Token und 30 Sekunden, 32 gleichzeitig.',
    options: { own: 'Benutzerdefiniert', bounded: 'Streng' },
  },
  limit_prompt_tokens: {
    label: 'Maximale Prompt-Länge',
    help: 'In Token, einschließlich des ganzen Chats.',
    absent: 'Kontextlänge',
  },
  limit_characters: {
    label: 'Maximale Nachrichtenlänge',
    help: 'In Zeichen.',
    absent: 'kein Limit',
  },
  limit_answer_tokens: {
    label: 'Maximale Antwortlänge',
    help: 'In Token. Anfragen nach längeren Antworten werden auf diese Länge begrenzt.',
    absent: 'bis der Kontext voll ist',
  },
  limit_seconds: {
    label: 'Zeitlimit für Antworten (Sekunden)',
    help: 'Einschließlich der Zeit in der Warteschlange. Bis dahin Geschriebenes bleibt erhalten.',
    absent: 'keines',
  },
  limit_concurrent: {
    label: 'Gleichzeitige Antworten',
    help: 'Weitere Anfragen kommen in die Warteschlange.',
  },
  limit_waiting: {
    label: 'Länge der Warteschlange',
    help: 'Ist die Warteschlange voll, werden Anfragen abgelehnt.',
  },
  api_model_alias: {
    label: 'Jeden Modellnamen annehmen',
    help: 'Anfragen nach unbekannten Modellen beantwortet das Standardmodell, statt einen Fehler zu melden.',
  },
  context_memory: {
    label: 'Speicher für Kontexte (MB)',
    help: 'Für alle Chats eines Modells zusammen. Ein voller Kontext passt immer.',
    absent: 'ein Teil des freien Speichers',
  },
  download_place: {
    label: 'Downloadordner',
    help: 'Den gemeinsamen Cache nutzen auch andere Programme für Modelle von Hugging Face. So ist jedes Modell nur einmal gespeichert.',
    options: { app: 'Inglenook-Ordner', hub_cache: 'Gemeinsamer Hugging-Face-Cache' },
  },
  download_limit: {
    label: 'Downloadlimit (KB/s)',
    help: 'Für alle Downloads zusammen.',
    absent: 'keines',
  },
  download_connections: {
    label: 'Verbindungen pro Datei',
    help: 'Anzahl der Teile einer Datei, die gleichzeitig geladen werden.',
  },
  download_patience: {
    label: 'Zeitlimit der Verbindung (Sekunden)',
    help: 'Baut die Verbindung neu auf, wenn so lange keine Daten ankommen.',
  },
  hub: {
    label: 'Hugging-Face-Adresse',
    help: 'Adresse eines Spiegelservers. HF_ENDPOINT hat Vorrang.',
    placeholder: 'https://huggingface.co',
  },
  trusted_keys: {
    label: 'Vertrauenswürdige Schlüssel',
    help: 'Öffentliche Minisign-Schlüssel, durch Leerzeichen getrennt. Damit signierte Modelllisten und Dateien werden überprüft.',
    placeholder: 'RW…',
  },
  offline: {
    label: 'Offline-Modus',
    help: 'Sperrt Verbindungen zu anderen Servern und Hugging Face: keine Antworten anderer Server, keine Modellsuche, keine Downloads, keine Suche nach Updates. Laufende Downloads pausieren.',
  },
  proxy: {
    label: 'Proxy',
    help: 'Adresse des Proxys für Hugging Face, andere Server, Tool-Server und Updates. Leer: der des Systems. Hosts in NO_PROXY werden direkt erreicht. Ein Passwort in der Adresse wird unverschlüsselt gespeichert.',
    placeholder: 'http://proxy.example:8080',
  },
  check_updates: {
    label: 'Nach Updates suchen',
    help: 'Fragt den Update-Server bei jedem Start des Fensters nach einer neueren Version. Gesendet wird nur die Anfrage nach einer Datei. Heruntergeladen wird erst, wenn du zustimmst.',
  },
  audit_log: {
    label: 'Prüfprotokoll',
    help: 'Hält jede Antwort in audit/audit.jsonl im Datenordner fest: Zeit, Schnittstelle, Schlüssel, Modell und Tokenzahlen.',
  },
  audit_text: {
    label: 'Antworten im Prüfprotokoll',
    help: 'Hält auch den Text jeder Antwort fest.',
  },
  allow_image_urls: {
    label: 'Bilder von Adressen holen',
    help: 'Programme, die den Server nutzen, dürfen statt eines Bildes dessen Webadresse senden. Adressen des eigenen Netzes lassen sie an Geräte, die nur dieser Computer erreicht.',
    options: {
      off: 'Nie',
      public: 'Aus dem öffentlichen Internet',
      any: 'Auch aus meinem Netz',
    },
  },
  endpoint_silence: {
    label: 'Zeitlimit für Server (Sekunden)',
    help: 'Trennt die Verbindung zu einem anderen Server, der beim Antworten so lange nichts sendet.',
  },
  key_place: {
    label: 'Schlüssel speichern in',
    help: 'Wo API-Schlüssel anderer Server und dein Hugging-Face-Token gespeichert werden.',
    options: {
      auto: 'Schlüsselbund des Systems, sonst verschlüsselte Datei',
      file: 'Verschlüsselte Datei im Datenordner',
    },
  },
  tools: {
    label: 'Modellen Tools anbieten',
    help: 'Bietet die Tools aller eingeschalteten Server an. Jeder Chat kann davon abweichen.',
  },
  tool_rounds: {
    label: 'Tool-Aufrufe ohne Nachfrage',
    help: 'Nach so vielen Runden von Tool-Aufrufen in Folge wirst du gefragt, auch bei Tools, die du immer erlaubst.',
  },
  tool_seconds: {
    label: 'Zeitlimit für Tools (Sekunden)',
    help: 'Bricht Aufrufe ab, die länger dauern, und meldet es dem Modell.',
  },
  tool_characters: {
    label: 'Maximale Ergebnislänge',
    help: 'In Zeichen. Längere Tool-Ergebnisse werden gekürzt, und das Modell wird informiert.',
  },
  attachment_megabytes: {
    label: 'Maximale Dateigröße (MB)',
    help: 'Größte Datei, die du an eine Nachricht anhängen kannst.',
  },
  attachment_count: {
    label: 'Dateien pro Nachricht',
    help: 'Höchstzahl der Anhänge.',
  },
  attachment_passages: {
    label: 'Auszüge aus langen Dateien',
    help: 'Token, die jede Frage aus Dateien erhält, die nicht in den Kontext passen.',
  },
  embedding_model: {
    label: 'Embedding-Modell',
    help: 'Findet Stellen in langen Dateien auch nach Bedeutung. Braucht ein Embedding-Modell und zusätzlichen Speicher.',
  },
  guard_marks: {
    label: 'Verdächtigen Text in Tool-Ergebnissen markieren',
    help: 'Zeigt unsichtbare Zeichen an und markiert Text, der dem Modell Anweisungen geben will.',
  },
};
