/** Reads messages aloud with the voices of the system. Voices that send text elsewhere are never used. */

/** Spoken at once: engines stop in the middle of long texts. */
const MAX_PIECE = 200;

/** Scripts that one language of ours is written in. */
const SCRIPTS: readonly (readonly [RegExp, string])[] = [
  [/[\p{Script=Hiragana}\p{Script=Katakana}]/u, 'ja'],
  [/\p{Script=Arabic}/u, 'ar'],
  [/\p{Script=Hangul}/u, 'ko'],
  [/\p{Script=Cyrillic}/u, 'ru'],
  [/\p{Script=Han}/u, 'zh'],
];

/** The language of a text by its letters; `otherwise` where they belong to many. */
export const spokenLanguage = (text: string, otherwise: string): string =>
  SCRIPTS.find(([script]) => script.test(text))?.[1] ?? otherwise;

/** Cuts a text where sentences end, else between words. Nothing but white space is lost. */
export function spokenPieces(text: string): string[] {
  const sentences = text.match(/[^.!?。！？؟\n]+(?:[.!?。！？؟]+|\n|$)\s*/gu) ?? [];
  const words = sentences.flatMap((sentence) =>
    sentence.length <= MAX_PIECE
      ? [sentence]
      : (sentence.match(new RegExp(`.{1,${MAX_PIECE}}(?:\\s|$)|.{1,${MAX_PIECE}}`, 'gsu')) ?? []),
  );
  return words.map((piece) => piece.trim()).filter((piece) => /[\p{L}\p{N}]/u.test(piece));
}

/** The voice for a language: the system's own choice first. Null: no voice of this computer speaks it. */
export function voiceFor(
  voices: readonly SpeechSynthesisVoice[],
  language: string,
): SpeechSynthesisVoice | null {
  const base = (tag: string) => tag.toLowerCase().split(/[-_]/)[0];
  const fit = voices.filter((it) => it.localService && base(it.lang) === base(language));
  return fit.find((it) => it.default) ?? fit[0] ?? null;
}

export class ReadAloud {
  /** The message that is being read; null: none. */
  message = $state<string | null>(null);
  /** Voices of this computer. */
  voices = $state.raw<readonly SpeechSynthesisVoice[]>([]);

  readonly #engine: SpeechSynthesis | undefined;

  constructor(engine: SpeechSynthesis | undefined = globalThis.speechSynthesis) {
    this.#engine = engine;
    this.#list();
    engine?.addEventListener('voiceschanged', () => this.#list());
  }

  /** Whether a text in this language can be read. */
  canRead(text: string, language: string): boolean {
    return voiceFor(this.voices, spokenLanguage(text, language)) !== null;
  }

  read(message: string, text: string, language: string): void {
    const engine = this.#engine;
    const voice = voiceFor(this.voices, spokenLanguage(text, language));
    if (!engine || !voice) return;
    this.stop();
    const pieces = spokenPieces(text);
    if (pieces.length === 0) return;
    this.message = message;
    pieces.forEach((piece, at) => {
      const spoken = new SpeechSynthesisUtterance(piece);
      spoken.voice = voice;
      spoken.lang = voice.lang;
      const over = () => this.message === message && (this.message = null);
      spoken.addEventListener('error', over);
      if (at === pieces.length - 1) spoken.addEventListener('end', over);
      engine.speak(spoken);
    });
  }

  stop(): void {
    this.message = null;
    this.#engine?.cancel();
  }

  #list(): void {
    this.voices = this.#engine?.getVoices().filter((it) => it.localService) ?? [];
  }
}
