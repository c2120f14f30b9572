import { afterEach, describe, expect, it } from 'vitest';
import { i18n } from './i18n.svelte';
import { localizeError } from './localize';

const OTHERS = 'The other chats in the file are imported.';

/** Code, text and remedy of the application, and what of them must stay in a translation. */
const CASES: readonly (readonly [string, string, string, readonly string[]])[] = [
  ['import.conversation', 'Plans: 2026: it has no messages.', OTHERS, ['Plans: 2026']],
  [
    'import.broken',
    'Number 3: it is cut off; the download may be incomplete.',
    OTHERS,
    ['Number 3'],
  ],
  [
    'import.broken',
    'Number 4: it is not valid JSON (expected value at line 1).',
    OTHERS,
    ['Number 4'],
  ],
  ['import.unknown', 'Number 5: it is a list, not a chat.', OTHERS, ['Number 5']],
  [
    'import.conversation',
    'Trip: message 7 has the unknown sender "robot" and is left out.',
    'The other messages of the chat are imported.',
    ['Trip', '7', 'robot'],
  ],
  [
    'import.conversation',
    'Trip: 12 messages that refer to each other in a cycle are left out.',
    'The other messages of the chat are imported.',
    ['Trip', '12'],
  ],
  ['import.broken', 'conversations-2.json: This file is empty.', OTHERS, ['conversations-2.json']],
  [
    'import.zip',
    "This ZIP file can't be read: it is cut off.",
    'The download may be incomplete. Download it again, or unpack it and choose conversations.json.',
    [],
  ],
  [
    'import.newer',
    'This export has version 9, but this Inglenook reads versions up to 3.',
    'Update Inglenook.',
    ['9', '3'],
  ],
  ['import.broken', 'The file arrived damaged.', 'Choose it again.', []],
];

describe('why chats could not be imported', () => {
  afterEach(() => i18n.choose('en'));

  it('is translated, and says what is wrong where', async () => {
    for (const language of ['de', 'ja', 'ar'] as const) {
      await i18n.choose(language);
      for (const [code, message, remedy, values] of CASES) {
        const text = localizeError({ code, message, remedy });
        expect(text.message, `${language} ${message}`).not.toBe(message);
        expect(text.remedy, `${language} ${remedy}`).not.toBe(remedy);
        for (const value of values) expect(text.message, language).toContain(value);
        expect(text.message + text.remedy, language).not.toMatch(/[{}]/);
      }
    }
  });

  it('stays as it is where its form is unknown', async () => {
    await i18n.choose('de');
    const error = { code: 'import.broken', message: 'Number 3: it sings.', remedy: OTHERS };
    expect(localizeError(error)).toBe(error);
  });
});
