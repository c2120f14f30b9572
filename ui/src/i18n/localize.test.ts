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

  // The English texts of `src-tauri/src/updates/update_errors.rs`.
  it.each([
    ['update.client', 'Updates cannot be looked for: no proxy.', ['no proxy']],
    ['update.download', 'The download from u.example broke off: end.', ['u.example', 'end']],
    ['update.format', 'u.example:81 sent no list of versions: line 1.', ['u.example:81', 'line 1']],
    ['update.install', 'The new version could not be installed: no space.', ['no space']],
    ['update.no_list', 'u.example has no list of versions.', ['u.example']],
    [
      'update.platform',
      'u.example has a newer version, but not for this kind of computer or package.',
      ['u.example'],
    ],
    [
      'update.redirect',
      'The update server leads to u.example, which is not encrypted.',
      ['u.example'],
    ],
    [
      'update.signature',
      'The new version from u.example was not accepted: wrong key.',
      ['u.example', 'wrong key'],
    ],
    ['update.too_large', 'The update from u.example is larger than 1024 MB.', ['1024']],
    ['update.unreachable', "u.example can't be reached: dns error.", ['u.example']],
  ])('names the place in the translation of %s', async (code, message, values) => {
    for (const language of ['de', 'ja', 'ar'] as const) {
      await i18n.choose(language);
      const text = localizeError({ code, message, remedy: 'Try again.' });
      expect(text.message, language).not.toBe(message);
      expect(text.remedy, language).not.toBe('Try again.');
      for (const value of values) expect(text.message, language).toContain(value);
    }
    await i18n.choose('en');
  });
});
