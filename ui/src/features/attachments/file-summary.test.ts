import { describe, expect, it } from 'vitest';
import { attachment } from '../../test/fixtures';
import { summarizeFile, summarizeScanned } from './file-summary';

describe('what is said of a file', () => {
  it.each([
    [{ kind: 'pdf', bytes: 1200 }, 'PDF · 1.2 kB'],
    [{ kind: 'image', tokens: 256, whole: true }, 'Image · 3 bytes · 256 tokens'],
    [{ kind: 'spreadsheet' }, 'Spreadsheet · 3 bytes'],
    [{ kind: 'text', tokens: 1 }, 'Text · 3 bytes · 1 token'],
    [{ kind: 'csv', tokens: 1234, whole: true }, 'CSV · 3 bytes · 1,234 tokens'],
    [{ kind: 'code', tokens: 9, whole: false }, 'Code · 3 bytes · 9 tokens · searched'],
    [{ kind: 'csv', guessed: 'Shift_JIS' }, 'CSV · Shift_JIS · 3 bytes'],
    [{ kind: 'markdown', tokens: 9, is_about: true }, 'Markdown · 3 bytes · about 9 tokens'],
  ] as const)('%o: %s', (over, expected) => {
    expect(summarizeFile(attachment('a', over), 'searched')).toBe(expected);
  });

  it.each([
    [{ images: 1, left_out: 0 }, false, '1 scanned page, read as an image'],
    [{ images: 4, left_out: 0 }, false, '4 scanned pages, read as images'],
    [
      { images: 20, left_out: 5 },
      false,
      '20 scanned pages, read as images · 5 more scanned pages not read',
    ],
    [{ images: 2, left_out: 0 }, true, '2 scanned pages, not read: this model can’t see images'],
  ])('scanned pages %o: %s', (pages, isHidden, expected) => {
    expect(summarizeScanned({ ...pages, is_all: false }, isHidden)).toBe(expected);
  });

  it('says that letters are missing', () => {
    const file = attachment('a', { kind: 'pdf', findings: [{ type: 'unreadable', percent: 12 }] });
    expect(summarizeFile(file, 'searched')).toBe('PDF · 3 bytes · partly unreadable');
  });
});
