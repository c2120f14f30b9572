/** The settings of graphics cards, contexts, limits, downloads and the network. */
import type { Catalogue } from '../types';

export const machine: Catalogue['settings'] = {
  backend: {
    label: 'Rechnen auf',
    help: 'Von selbst rechnet eine Grafikkarte, wo sie nachgemessen schneller ist als der Prozessor. Ihre Kernel werden geprüft, wenn sie mit einem Treiber zum ersten Mal gebraucht wird; versagt sie, macht der Prozessor weiter.',
    options: { auto: 'Was schneller ist', cpu: 'Dem Prozessor', gpu: 'Einer Grafikkarte' },
  },
  gpu_layers: {
    label: 'GPU-Schichten',
    help: 'Wie viele Schichten eines Modells Grafikkarten rechnen; die anderen bleiben beim Prozessor. Was ein Modell nähme, steht bei seinen Einzelheiten.',
    absent: 'so viele, wie passen',
  },
  gpu_memory: {
    label: 'Speicher von Grafikkarten',
    help: 'In Megabyte: was ein Modell von jeder nehmen darf.',
    absent: 'das meiste',
  },
  gpu_precision: {
    label: 'Genauigkeit von Grafikkarten',
    help: 'Gleitkommazahlen sind am genauesten. Halbe lesen Eingaben womöglich schneller, mit weit kleinerem Fehler als die Ganzzahlen des Prozessors; Tensorkerne noch schneller, nur hängt eine Antwort dann ein wenig davon ab, was neben ihr gelesen wird. Was eine Karte nicht kann oder falsch macht, lässt sie weg.',
    options: {
      auto: 'Gleitkommazahlen',
      f32: 'Immer Gleitkommazahlen',
      f16: 'Halbe',
      matrices: 'Halbe auf Tensorkernen (ein Versuch)',
    },
  },
  gpu_devices: {
    label: 'Welche Grafikkarten',
    help: 'Nummern oder Teile von Namen, wie `nook devices` sie nennt, ein Komma zwischen zweien.',
    placeholder: 'die beste, die da ist',
  },
  gpu_spread: {
    label: 'Mehrere Grafikkarten',
    help: 'Wo jede das ganze Modell hat, werden Chats auf sie verteilt: Was gleichzeitig beantwortet wird, kommt eher, und fällt eine aus, machen die anderen weiter. Mit geteilten Schichten passen größere Modelle.',
    options: {
      auto: 'Ganze Modelle, wo sie passen',
      layers: 'Schichten eines Modells teilen',
      copies: 'Das ganze Modell auf jeder',
    },
  },
  context_store_every: {
    label: 'Kontexte speichern',
    help: 'Nach wie vielen Antworten der Kontext einer Unterhaltung gespeichert wird, damit sie nach einem Neustart sofort weitergeht.',
    absent: 'nie',
  },
  context_disk: {
    label: 'Platte für Kontexte',
    help: 'In Megabyte. Was am längsten nicht gebraucht wurde, geht zuerst; Worte gehen nie verloren.',
  },
  idle_memory: {
    label: 'Speicher für ruhende Kontexte',
    help: 'In Megabyte, für jedes Modell: Kontexte von Unterhaltungen, in denen gerade niemand fragt.',
  },
  idle_minutes: {
    label: 'Ruhende Kontexte verlassen den Speicher',
    help: 'In Minuten ohne Frage. Vorher werden sie gespeichert, und mit der nächsten kommen sie zurück.',
    absent: 'wenn Speicher gebraucht wird',
  },
  limits: {
    label: 'Geltende Grenzen',
    help: 'Begrenzt: Prompts von 2.048 Token und 10.000 Zeichen, Antworten von 512 Token und 30 Sekunden, 32 zugleich; für Programme, die Fremde fragen dürfen.',
    options: { own: 'Die unten', bounded: 'Begrenzt' },
  },
  limit_prompt_tokens: {
    label: 'Längster Prompt',
    help: 'In Token, die ganze Unterhaltung mitgezählt.',
    absent: 'was der Kontext fasst',
  },
  limit_characters: {
    label: 'Längste Nachricht',
    help: 'In Zeichen.',
    absent: 'jede, die sich aufbewahren lässt',
  },
  limit_answer_tokens: {
    label: 'Längste Antwort, um die man bitten kann',
    help: 'In Token; ein Programm, das mehr will, bekommt so viele.',
    absent: 'bis der Kontext voll ist',
  },
  limit_seconds: {
    label: 'Längste Zeit für eine Antwort',
    help: 'In Sekunden, das Warten mitgezählt; was bis dahin geschrieben ist, bleibt.',
    absent: 'so lange es dauert',
  },
  limit_concurrent: { label: 'Antworten zugleich', help: 'Weitere warten, bis sie dran sind.' },
  limit_waiting: {
    label: 'Antworten, die warten dürfen',
    help: 'Darüber hinaus wird eine Frage sofort abgelehnt.',
  },
  context_memory: {
    label: 'Speicher für Kontexte',
    help: 'In Megabyte, für alle Unterhaltungen, die ein Modell zugleich hält; ein ganzer Kontext hat immer Platz.',
    absent: 'ein Teil des freien',
  },
  download_place: {
    label: 'Modelle aufbewahren in',
    help: 'Der gemeinsame Cache ist der, den andere Programme für Modelle von Hugging Face lesen, sodass es eine Kopie für alle gibt.',
    options: { app: 'Ordner dieses Programms', hub_cache: 'Gemeinsamer Cache von Hugging Face' },
  },
  download_limit: {
    label: 'Tempolimit',
    help: 'In Kilobyte pro Sekunde, für alle Downloads zusammen.',
    absent: 'keines',
  },
  download_connections: {
    label: 'Verbindungen',
    help: 'Wie viele Teile einer Datei zugleich kommen.',
  },
  download_patience: {
    label: 'Geduld',
    help: 'In Sekunden: wie lange eine Verbindung schweigen darf, bevor eine neue aufgebaut wird.',
  },
  hub: {
    label: 'Hub',
    help: 'Die Adresse eines Spiegels von Hugging Face; HF_ENDPOINT geht vor.',
    placeholder: 'https://huggingface.co',
  },
  trusted_keys: {
    label: 'Vertraute Schlüssel',
    help: 'Öffentliche Schlüssel von minisign, ein Leerzeichen zwischen zweien. Modelllisten und Dateien, die sie signiert haben, werden daran gemessen.',
    placeholder: 'RW…',
  },
  offline: {
    label: 'Offline bleiben',
    help: 'Nichts geht an andere Server oder an den Hub: keine Antworten, keine Suche, keine Downloads. Was läuft, ruht.',
  },
  endpoint_silence: {
    label: 'Geduld mit anderen Servern',
    help: 'In Sekunden: Ein Server, der beim Antworten so lange schweigt, wird aufgegeben.',
  },
  key_place: {
    label: 'Schlüssel aufbewahren in',
    help: 'Wo Schlüssel anderer Server und das Token des Hubs aufbewahrt werden, wenn man sie gibt.',
    options: {
      auto: 'Schlüsselbund des Systems, oder eine Datei, wo keiner läuft',
      file: 'Verschlüsselte Datei im Datenordner',
    },
  },
};
