import type { Catalogue } from '../types';

const BY_MODEL = 'Wie das Modell mag';

export const rows: Catalogue['settings'] = {
  language: {
    label: 'Sprache',
    help: 'Für die Wörter auf dieser Seite. Modelle antworten in der Sprache, in der du ihnen schreibst.',
    options: { system: 'Wie das System' },
  },
  model: { label: 'Standardmodell', help: 'Antwortet in neuen Unterhaltungen.' },
  temperature: {
    label: 'Temperatur',
    help: '0 nimmt immer das wahrscheinlichste Token; höhere Werte wechseln mehr ab.',
  },
  top_k: {
    label: 'Top-k',
    help: 'Nur die k wahrscheinlichsten Token kommen in Frage. Bei 0 alle.',
  },
  top_p: {
    label: 'Top-p',
    help: 'Nur die wahrscheinlichsten Token, die zusammen diese Wahrscheinlichkeit erreichen. Bei 1 alle.',
  },
  min_p: {
    label: 'Min-p',
    help: 'Lässt Token weg, die unwahrscheinlicher sind als dieser Anteil des wahrscheinlichsten. Bei 0 keines.',
  },
  repeat_penalty: {
    label: 'Strafe für Wiederholung',
    help: 'Macht Token unwahrscheinlicher, die gerade vorkamen. 1 ist aus.',
  },
  seed: {
    label: 'Startwert',
    help: 'Derselbe Startwert und Prompt geben dieselbe Antwort.',
    absent: 'zufällig',
  },
  max_tokens: { label: 'Längste Antwort', help: 'In Token.', absent: 'bis der Kontext voll ist' },
  titles: {
    label: 'Modell benennt Unterhaltungen',
    help: 'Nach der ersten Antwort, wenn sonst nichts zu tun ist. Namen, die du gibst, bleiben.',
  },
  thinking: {
    label: 'Vor der Antwort nachdenken',
    help: 'Für Modelle, die beides können. /think oder /no_think in einer Nachricht sagt es denen, die diese Wörter kennen.',
    options: { model: BY_MODEL, on: 'Ja', off: 'Nein' },
  },
  reasoning_effort: {
    label: 'Mühe',
    help: 'Wie lange Modelle nachdenken, die Stufen davon kennen, etwa gpt-oss.',
    options: { model: BY_MODEL, low: 'Wenig', medium: 'Mittel', high: 'Viel' },
  },
  reasoning_budget: {
    label: 'Längstes Nachdenken',
    help: 'In Token; dann muss das Modell antworten.',
    absent: 'so lange das Modell mag',
  },
  template_fallback: {
    label: 'Kaputte Chatvorlagen ersetzen',
    help: 'Wo die Chatvorlage eines Modells nicht zu gebrauchen ist, die seiner Familie nehmen und es sagen.',
  },
  chat_templates: {
    label: 'Andere Chatvorlagen',
    help: 'Dateien anstelle der Vorlagen, die Modelle mitbringen: Kennung des Modells, =, die Datei; ein Semikolon zwischen zweien.',
    placeholder: 'modell=/pfad/zur/vorlage.jinja',
  },
  speculation: {
    label: 'Vorausraten',
    help: 'Mehrere Token werden auf einmal geprüft, wo der bisherige Text oder ein kleineres Modell sie vorhersagt. Antworten bleiben gleich und kommen schneller; wo es nicht lohnt, ruht es.',
    options: { lookup: 'Aus dem bisherigen Text', draft: 'Mit einem kleineren Modell', off: 'Aus' },
  },
  draft_model: {
    label: 'Kleineres Modell, das rät',
    help: 'Aus derselben Familie wie das Modell, das antwortet: Ihre Token müssen dieselben sein. Braucht eigenen Speicher.',
  },
  threads: {
    label: 'Threads',
    help: 'Wie viele Threads rechnen.',
    absent: 'einer je schnellem Kern; am Akku die Hälfte',
  },
  affinity: {
    label: 'Threads an Kerne binden',
    help: 'Hält das System davon ab, Threads zu verschieben; hilft manchen Rechnern und schadet, wo andere Programme rechnen.',
  },
  numa: {
    label: 'Mehrere Speicher (NUMA)',
    help: 'Für Computer mit mehreren Sockeln; andere haben nichts zu wählen.',
    options: {
      off: 'Wie das System mag',
      node: 'Threads bei einem Speicher',
      spread: 'Threads reihum bei jedem',
    },
  },
  context: {
    label: 'Kontextlänge',
    help: 'Wie viele Token einer Unterhaltung ein Modell fasst; mehr braucht mehr Speicher.',
    absent: 'die des Modells, höchstens 8192',
  },
  compression: {
    label: 'Lange Unterhaltungen',
    help: 'Was dem Modell gezeigt wird, wenn eine Unterhaltung länger ist als sein Kontext. Deine Nachrichten bleiben immer.',
    options: {
      window: 'Die ältesten Nachrichten auslassen',
      summary: 'Die ältesten Nachrichten zusammenfassen',
      attention: 'Vergessen, was am wenigsten zählt (nicht exakt)',
      off: 'Anhalten und es sagen',
    },
  },
  refusal_patterns: {
    label: 'Abgelehnte Muster',
    help: 'Reguläre Ausdrücke, mit ;; zwischen zweien. Was auf einen passt, wird keinem Modell geschickt.',
    placeholder: 'keine',
  },
  attachment_megabytes: {
    label: 'Größte Datei',
    help: 'In Megabyte, einer Datei, die mit einer Nachricht geht.',
  },
  attachment_count: {
    label: 'Dateien einer Nachricht',
    help: 'Mehr werden abgewiesen.',
  },
  attachment_passages: {
    label: 'Stellen aus einer langen Datei',
    help: 'In Token: was das Modell aus Dateien bekommt, die nicht ganz hineinpassen, für jede Frage.',
  },
  embedding_model: {
    label: 'Embedding-Modell',
    help: 'Findet Stellen in langen Dateien auch nach ihrer Bedeutung, nicht nur nach ihren Wörtern. Braucht ein Modell, das dafür gemacht ist, und eigenen Speicher.',
  },
  guard_marks: {
    label: 'Verstecktes in Texten von Werkzeugen zeigen',
    help: 'Unsichtbare Zeichen werden ausgeschrieben, und auf Text, der wie Anweisungen an das Modell klingt, wird hingewiesen.',
  },
  kv: {
    label: 'Genauigkeit des Kontexts',
    help: 'Wie der Kontext im Speicher liegt.',
    options: {
      f16: '16-Bit-Gleitkomma',
      f32: '32-Bit-Gleitkomma',
      q8_0: '8-Bit-Blöcke (halber Speicher)',
      q4_0: '4-Bit-Blöcke (ein Viertel; weniger genau)',
    },
  },
  kv_aging: {
    label: 'Alte Teile langer Kontexte',
    help: 'In 8-Bit-Blöcken brauchen sie etwa den halben Speicher, und Antworten können ein wenig abweichen. Nur Kontexte in 16 oder 32 Bit altern. Eine Grafikkarte behält den Platz dessen, was genau war, und schafft für Gealtertes neuen.',
    options: {
      off: 'Bleiben genau',
      pressure: 'Altern, bevor ein Kontext den Speicher verlassen muss',
      after: 'Altern nach ihrem Abstand vom Ende',
    },
  },
  kv_aging_after: {
    label: 'Neueste Token, die genau bleiben',
    help: 'Wenn alte Teile nach ihrem Abstand vom Ende altern: so viele Token davor.',
  },
  kv_window: {
    label: 'Fenster',
    help: 'Wie viele Token Schichten zurücksehen, die Positionen durch Drehung kennen. Braucht weniger Speicher, verändert aber das Modell: Es wurde nicht so trainiert, und Antworten werden schlechter.',
    absent: 'wie das Modell es hat',
  },
  context_stretch: {
    label: 'Kontext strecken',
    help: 'Vervielfacht, wie viele Token Modelle fassen (YaRN). 1 ist aus; je mehr, desto schlechter die Antworten.',
  },
  resident_budget: {
    label: 'Speicher für Gewichte',
    help: 'In Megabyte. Was ein Modell darüber hinaus hat, wird bei Bedarf von der Platte gelesen, was langsamer ist.',
    absent: 'wofür der Rechner Platz hat',
  },
  large_pages: {
    label: 'Große Seiten',
    help: 'Modelle werden in Seiten von zwei Megabyte gelesen, wo das System sie hat: Der nächste Start geht schneller.',
  },
  log_level: {
    label: 'Ausführlichkeit des Protokolls',
    help: 'Was in den Protokollordner kommt. Prompts und Antworten werden nie protokolliert.',
    options: { error: 'Fehler', warn: 'Warnungen', info: 'Üblich', debug: 'Ausführlich' },
  },
  data_dir: {
    label: 'Datenordner',
    help: 'Beim Start durch --data-dir oder INGLENOOK_DATA_DIR gesetzt.',
  },
  other_programs: {
    label: 'Modelle anderer Programme zeigen',
    help: 'Modelle in den Caches von Hugging Face und LM Studio werden aufgeführt und dort gelesen, wo sie liegen; nichts wird kopiert oder geändert.',
  },
  idle_unload: {
    label: 'Entladen nach',
    help: 'Minuten, nach denen ein Modell, das niemand fragt, den Speicher verlässt. Die nächste Frage lädt es wieder.',
    absent: 'nie',
  },
  theme: {
    label: 'Farben',
    help: 'Hell, dunkel oder wie das System.',
    options: { system: 'System', light: 'Hell', dark: 'Dunkel' },
  },
  send_key: {
    label: 'Senden mit',
    help: 'Die andere Kombination bricht die Zeile um.',
    options: { enter: 'Eingabe', mod_enter: 'Strg+Eingabe (⌘+Eingabe am Mac)' },
  },
  wide: {
    label: 'Breite Unterhaltungen',
    help: 'So breit wie das Fenster statt in Zeilen, die sich gut lesen.',
  },
  follow: {
    label: 'Antworten folgen',
    help: 'Die Seite geht mit, während eine Antwort entsteht, bis du nach oben scrollst. Aus: Sie bleibt, wo du liest.',
  },
  thinking_open: {
    label: 'Nachdenken zeigen',
    help: 'Was Modelle überlegen, steht offen über ihren Antworten statt zusammengefaltet.',
  },
  notify: {
    label: 'Sagen, wenn eine lange Antwort fertig ist',
    help: 'Durch eine Benachrichtigung, wenn das Fenster nicht vorn ist und die Antwort zehn Sekunden oder länger brauchte.',
  },
  tray: {
    label: 'Neben der Uhr bleiben',
    help: 'Ein Symbol in der Leiste. Das Fenster zu schließen versteckt es dann nur; Antworten und Downloads laufen weiter.',
  },
  welcome: {
    label: 'Willkommen',
    help: 'Zeigt die ersten Schritte, wenn das Fenster sich öffnet und es noch keine Unterhaltung gibt.',
  },
  zoom: { label: 'Zoom', help: 'Des ganzen Fensters, in Prozent.' },
  shortcuts: {
    label: 'Tastenkürzel',
    help: 'Tasten von Befehlen, wo sie von den mitgelieferten abweichen; eine leere Liste schaltet einen ab.',
  },
  tools: {
    label: 'Modellen Werkzeuge anbieten',
    help: 'Die der eingeschalteten Server; jede Unterhaltung kann anders wählen.',
  },
  tool_rounds: {
    label: 'Runden ohne dich',
    help: 'Nach so vielen Aufrufen und Ergebnissen in Folge wirst du gefragt, was auch immer du erlaubt hast.',
  },
  tool_seconds: {
    label: 'Geduld mit Werkzeugen',
    help: 'In Sekunden: Ein Aufruf, der länger dauert, wird aufgegeben, und das Modell erfährt es.',
  },
  tool_characters: {
    label: 'Längstes Ergebnis',
    help: 'In Zeichen: Was ein Werkzeug darüber hinaus bringt, wird weggelassen, und das Modell erfährt es.',
  },
};
