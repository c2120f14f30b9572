import { beforeEach, describe, expect, it, vi } from 'vitest';
import { ReadAloud, spokenLanguage, spokenPieces, voiceFor } from './read-aloud.svelte';

const voice = (lang: string, localService = true, isDefault = false): SpeechSynthesisVoice => ({
  lang,
  localService,
  default: isDefault,
  name: lang,
  voiceURI: lang,
});

class FakeUtterance extends EventTarget {
  voice: SpeechSynthesisVoice | null = null;
  lang = '';
  readonly text: string;

  constructor(text: string) {
    super();
    this.text = text;
  }
}

beforeEach(() => void vi.stubGlobal('SpeechSynthesisUtterance', FakeUtterance));

function engineWith(voices: SpeechSynthesisVoice[]) {
  const spoken: FakeUtterance[] = [];
  const engine = Object.assign(new EventTarget(), {
    getVoices: () => voices,
    speak: (it: FakeUtterance) => spoken.push(it),
    cancel: () => spoken.splice(0),
  });
  return { reader: new ReadAloud(engine as unknown as SpeechSynthesis), spoken, engine };
}

describe('reading aloud', () => {
  it.each([
    ['Guten Tag', 'de', 'de'],
    ['薪は何ですか', 'en', 'ja'],
    ['木柴', 'en', 'zh'],
    ['ما هو الموقد؟', 'en', 'ar'],
  ])('%s among %s is %s', (text, otherwise, expected) => {
    expect(spokenLanguage(text, otherwise)).toBe(expected);
  });

  it('cuts at sentences and between words', () => {
    expect(spokenPieces('One. Two!\n\n---\nThree')).toEqual(['One.', 'Two!', 'Three']);
    const long = Array.from({ length: 80 }, (_, n) => `word${n}`).join(' ');
    const pieces = spokenPieces(long);
    expect(pieces.every((it) => it.length <= 200)).toBe(true);
    expect(pieces.join(' ')).toBe(long);
  });

  it('uses voices of this computer only', () => {
    const voices = [voice('de-DE', false), voice('de_AT'), voice('de-DE', true, true)];
    expect(voiceFor(voices, 'de')?.default).toBe(true);
    expect(voiceFor([voice('de-DE', false)], 'de')).toBeNull();
    expect(voiceFor(voices, 'fr')).toBeNull();
  });

  it('is over when the last piece was read or when it is stopped', () => {
    const { reader, spoken } = engineWith([voice('en-US')]);
    expect([reader.canRead('Hello', 'en'), reader.canRead('薪は', 'en')]).toEqual([true, false]);
    reader.read('m1', 'One. Two.', 'en');
    expect([reader.message, spoken.map((it) => it.text)]).toEqual(['m1', ['One.', 'Two.']]);
    spoken[0]?.dispatchEvent(new Event('end'));
    expect(reader.message).toBe('m1');
    spoken[1]?.dispatchEvent(new Event('end'));
    expect(reader.message).toBeNull();
    reader.read('m2', 'One.', 'en');
    reader.stop();
    expect([reader.message, spoken]).toEqual([null, []]);
  });

  it('finds voices that come later', () => {
    const voices: SpeechSynthesisVoice[] = [];
    const { reader, engine } = engineWith(voices);
    expect(reader.canRead('Hello', 'en')).toBe(false);
    voices.push(voice('en-GB'));
    engine.dispatchEvent(new Event('voiceschanged'));
    expect(reader.canRead('Hello', 'en')).toBe(true);
  });
});
