import type { Catalogue } from '../types';

export const rows: Catalogue['settings'] = {
  language: {
    label: 'Sprache',
    help: 'Sprache der Oberfläche. Modelle antworten in der Sprache, in der du schreibst.',
    options: { system: 'System' },
  },
  model: {
    label: 'Standardmodell',
    help: 'Wird für neue Chats verwendet.',
  },
  memory: {
    label: 'Gedächtnis verwenden',
    help: 'Fügt dem Prompt jedes Chats die Notizen der Seite „Gedächtnis“ hinzu. Jeder Chat und jedes Projekt kann das anders festlegen. Nichts wird notiert, das du nicht speicherst.',
  },
  temperature: {
    label: 'Temperatur',
    help: '0 wählt immer das wahrscheinlichste Token. Höhere Werte geben abwechslungsreichere Antworten.',
  },
  top_k: {
    label: 'Top-k',
    help: 'Wählt nur aus den k wahrscheinlichsten Token. 0 schaltet dies aus.',
  },
  top_p: {
    label: 'Top-p',
    help: 'Wählt nur aus den wahrscheinlichsten Token, deren Wahrscheinlichkeiten zusammen diesen Wert erreichen. 1 schaltet dies aus.',
  },
  min_p: {
    label: 'Min-p',
    help: 'Verwirft Token, deren Wahrscheinlichkeit unter diesem Anteil der des wahrscheinlichsten Tokens liegt. 0 schaltet dies aus.',
  },
  repeat_penalty: {
    label: 'Wiederholungsstrafe',
    help: 'Macht kürzlich verwendete Token unwahrscheinlicher. 1 schaltet dies aus.',
  },
  seed: {
    label: 'Seed',
    help: 'Derselbe Seed und derselbe Prompt ergeben dieselbe Antwort.',
    absent: 'zufällig',
  },
  max_tokens: {
    label: 'Maximale Antwortlänge',
    help: 'In Token.',
    absent: 'bis der Kontext voll ist',
  },
  titles: {
    label: 'Chattitel generieren',
    help: 'Das Modell benennt einen Chat nach der ersten Antwort, sobald es frei ist. Titel, die du eingibst, bleiben unverändert.',
  },
  guide_answers: {
    label: 'Eingebautes Modell antwortet aus der Anleitung',
    help: 'Seine Antworten sind Artikel der Anleitung. Ausgeschaltet schreibt das Modell selbst.',
  },
  thinking: {
    label: 'Vor der Antwort nachdenken',
    help: 'Für Modelle, bei denen sich das Nachdenken ein- und ausschalten lässt. Manche kennen auch /think oder /no_think in einer Nachricht.',
    options: { model: 'Standard des Modells', on: 'Ein', off: 'Aus' },
  },
  reasoning_effort: {
    label: 'Denkaufwand',
    help: 'Wie lange Modelle mit Denkstufen nachdenken, etwa gpt-oss.',
    options: { model: 'Standard des Modells', low: 'Niedrig', medium: 'Mittel', high: 'Hoch' },
  },
  reasoning_budget: {
    label: 'Maximale Denklänge',
    help: 'In Token. Danach muss das Modell antworten.',
    absent: 'Standard des Modells',
  },
  template_fallback: {
    label: 'Fehlerhafte Chat-Templates ersetzen',
    help: 'Ist das Chat-Template eines Modells unbrauchbar, wird das seiner Modellfamilie verwendet und ein Hinweis angezeigt.',
  },
  chat_templates: {
    label: 'Eigene Chat-Templates',
    help: 'Dateien, die die Templates von Modellen ersetzen, als Modell=Datei. Trenne Einträge mit Semikolons.',
    placeholder: 'modell=/pfad/zum/template.jinja',
  },
  speculation: {
    label: 'Spekulatives Decoding',
    help: 'Prüft mehrere vorhergesagte Token auf einmal. Antworten bleiben gleich, kommen aber schneller. Pausiert, wenn es nichts bringt.',
    options: {
      lookup: 'Aus dem Chat vorhersagen',
      draft: 'Mit einem Draft-Modell vorhersagen',
      off: 'Aus',
    },
  },
  draft_model: {
    label: 'Draft-Modell',
    help: 'Ein kleineres Modell, das Token vorhersagt. Es braucht dasselbe Vokabular wie das Hauptmodell und zusätzlichen Speicher.',
  },
  threads: {
    label: 'CPU-Threads',
    help: 'Anzahl der Threads für Berechnungen.',
    absent: 'einer pro schnellem Kern; im Akkubetrieb die Hälfte',
  },
  affinity: {
    label: 'CPU-Affinität',
    help: 'Bindet Threads an CPU-Kerne. Auf manchen Computern schneller, langsamer, wenn andere Programme rechnen.',
  },
  numa: {
    label: 'NUMA',
    help: 'Verteilung von Threads und Speicher auf Computern mit mehreren CPU-Sockeln. Auf anderen Computern ohne Wirkung.',
    options: { off: 'Systemstandard', node: 'Ein NUMA-Knoten', spread: 'Alle NUMA-Knoten' },
  },
  context: {
    label: 'Kontextlänge',
    help: 'Höchstzahl der Token eines Chats, die das Modell sehen kann. Längere Kontexte brauchen mehr Speicher.',
    absent: 'der des Modells, höchstens 8192',
  },
  compression: {
    label: 'Wenn der Kontext voll ist',
    help: 'Was das Modell sieht, wenn ein Chat nicht mehr in den Kontext passt. Deine Nachrichten werden nie gelöscht.',
    options: {
      window: 'Älteste Nachrichten auslassen',
      summary: 'Ältere Nachrichten zusammenfassen',
      attention: 'Unwichtigste Token vergessen (ungenau)',
      off: 'Mit Fehler anhalten',
    },
  },
  refusal_patterns: {
    label: 'Blockierte Muster',
    help: 'Nachrichten, auf die einer dieser regulären Ausdrücke passt, werden nicht an Modelle gesendet. Trenne Ausdrücke mit ;;.',
    placeholder: 'keine',
  },
  kv: {
    label: 'Genauigkeit des KV-Caches',
    help: '8 Bit antworten so gut wie 16 Bit. 4 Bit erhöhten die Perplexität zweier kleiner Modelle um 6 und 12 %, Keys mit 8 und Values mit 4 Bit um 1,6 und 0,3 %.',
    options: {
      f16: '16-Bit-Gleitkomma',
      f32: '32-Bit-Gleitkomma',
      q8_0: '8 Bit (halber Speicher)',
      'q8_0/q4_0': 'Keys mit 8, Values mit 4 Bit (zwei Fünftel des Speichers)',
      q4_0: '4 Bit (ein Viertel des Speichers, ungenauer)',
    },
  },
  kv_aging: {
    label: 'Älteren KV-Cache komprimieren',
    help: 'Speichert ältere Token in 8 Bit und braucht dafür etwa den halben Speicher; Antworten können leicht abweichen. Gilt für Caches mit 16 und 32 Bit. Eine GPU behält den Speicher für volle Genauigkeit und belegt für den komprimierten Teil zusätzlichen.',
    options: {
      off: 'Aus',
      pressure: 'Wenn der Speicher knapp wird',
      after: 'Jenseits der neuesten Token',
    },
  },
  kv_aging_after: {
    label: 'Unkomprimierte Token',
    help: 'Anzahl der neuesten Token, die bei voller Genauigkeit bleiben, wenn ältere komprimiert werden.',
  },
  kv_window: {
    label: 'Sliding Window',
    help: 'Begrenzt die Attention in Schichten mit Rotary Positions (RoPE) auf die letzten Token. Spart Speicher, aber Antworten werden schlechter, weil das Modell nicht so trainiert wurde.',
    absent: 'Standard des Modells',
  },
  context_stretch: {
    label: 'RoPE-Skalierung',
    help: 'Vervielfacht den maximalen Kontext des Modells (YaRN). 1 schaltet dies aus. Höhere Werte verschlechtern die Antworten.',
  },
  resident_budget: {
    label: 'Speicher für Gewichte (MB)',
    help: 'Die übrigen Gewichte werden bei Bedarf von der Festplatte gelesen, was langsamer ist.',
    absent: 'so viel wie passt',
  },
  large_pages: {
    label: 'Große Speicherseiten (Huge Pages)',
    help: 'Liest Modelle in 2-MB-Seiten, wo das System es unterstützt. Der nächste Start ist dann schneller.',
  },
  log_level: {
    label: 'Protokollierungsgrad',
    help: 'Wie viel in den Protokollordner geschrieben wird. Prompts und Antworten werden nie protokolliert.',
    options: { error: 'Fehler', warn: 'Warnungen', info: 'Normal', debug: 'Detailliert' },
  },
  data_dir: {
    label: 'Datenordner',
    help: 'Beim Start durch --data-dir oder INGLENOOK_DATA_DIR festgelegt.',
  },
  other_programs: {
    label: 'Modelle anderer Programme anzeigen',
    help: 'Zeigt Modelle aus den Ordnern von Hugging Face und LM Studio an und nutzt sie direkt dort. Es wird nichts kopiert oder geändert.',
  },
  idle_unload: {
    label: 'Entladen nach (Minuten)',
    help: 'Entlädt ein Modell, das so lange nicht verwendet wurde. Mit der nächsten Nachricht wird es wieder geladen.',
    absent: 'nie',
  },
  theme: {
    label: 'Design',
    help: 'Hell, dunkel oder wie das System.',
    options: { system: 'System', light: 'Hell', dark: 'Dunkel' },
  },
  send_key: {
    label: 'Senden mit',
    help: 'Die andere Kombination fügt einen Zeilenumbruch ein.',
    options: { enter: 'Eingabe', mod_enter: 'Strg+Eingabe (⌘+Eingabe am Mac)' },
  },
  wide: {
    label: 'Breite Chats',
    help: 'Nutzt die ganze Fensterbreite statt einer gut lesbaren Zeilenlänge.',
  },
  follow: {
    label: 'Antworten folgen',
    help: 'Scrollt mit, während eine Antwort entsteht, bis du nach oben scrollst.',
  },
  thinking_open: {
    label: 'Nachdenken anzeigen',
    help: 'Klappt das Nachdenken des Modells über den Antworten auf.',
  },
  notify: {
    label: 'Benachrichtigen, wenn eine lange Antwort fertig ist',
    help: 'Nur wenn das Fenster im Hintergrund ist und die Antwort mindestens zehn Sekunden gedauert hat.',
  },
  tray: {
    label: 'Im Infobereich anzeigen',
    help: 'Beim Schließen bleibt das Fenster im Infobereich. Antworten und Downloads laufen weiter.',
  },
  welcome: {
    label: 'Einführung',
    help: 'Zeigt die Einführung, wenn das Fenster sich öffnet und es noch keine Chats gibt.',
  },
  zoom: {
    label: 'Zoom (%)',
    help: 'Größe aller Inhalte im Fenster.',
  },
  shortcuts: {
    label: 'Tastenkürzel',
    help: 'Tastenkürzel, die vom Standard abweichen. Eine leere Liste schaltet ein Kürzel aus.',
  },
};
