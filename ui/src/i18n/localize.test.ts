import { describe, expect, it } from 'vitest';
import { i18n, localizeError } from './index';

describe('errors whose texts name things', () => {
  it('puts the values of a recovered database into the translation', async () => {
    const message =
      'The chat database was damaged. 7 chats were recovered. Missing: 1 titles, at least 2 messages; 3 places could not be read. The damaged file is kept as /home/a/inglenook.db.damaged-5.';
    const error = { code: 'session.damaged', message, remedy: 'Nothing was deleted.' };
    for (const language of ['de', 'ja', 'ar'] as const) {
      await i18n.choose(language);
      const text = localizeError(error).message;
      for (const value of ['7', '1', '2', '3', '/home/a/inglenook.db.damaged-5']) {
        expect(text, language).toContain(value);
      }
      expect(text, language).not.toContain('{');
      // Where it says more, the English text stays.
      expect(localizeError({ ...error, message: 'Something else.' }).message).toBe(
        'Something else.',
      );
    }
    await i18n.choose('en');
    expect(localizeError(error)).toBe(error);
  });

  // The English texts of `mcp/src/authorization/fault.rs`.
  it.each([
    ['tools.sign_in', 'lab requires you to sign in.', ['lab']],
    ['tools.sign_in_canceled', 'The sign-in to lab was canceled.', ['lab']],
    ['tools.sign_in_denied', 'You did not allow access to lab.', ['lab']],
    ['tools.sign_in_expired', 'Your sign-in to lab has expired.', ['lab']],
    [
      'tools.sign_in_timeout',
      'The sign-in to lab was not completed within 5 minutes.',
      ['lab', '5'],
    ],
  ])('names the tool server in the translation of %s', async (code, message, values) => {
    for (const language of ['de', 'ja', 'ar'] as const) {
      await i18n.choose(language);
      const text = localizeError({ code, message, remedy: 'Sign in again.' }).message;
      expect(text, language).not.toBe(message);
      for (const value of values) expect(text, language).toContain(value);
    }
    await i18n.choose('en');
  });
});
