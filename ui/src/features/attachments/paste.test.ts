// @vitest-environment jsdom
import { describe, expect, it } from 'vitest';
import { insertText, isExport, isExportPath, MAX_INLINE_CHARS, classifyPaste } from './paste';

describe('what is pasted', () => {
  const data = (text: string, ...files: File[]) =>
    ({ getData: () => text, files }) as unknown as DataTransfer;

  it('is files, a text that is too long, or neither', () => {
    const file = new File(['x'], 'x.txt');
    expect(classifyPaste(data('', file))).toEqual({ type: 'files', files: [file] });
    expect(classifyPaste(data('cells', file))).toEqual({ type: 'plain' });
    expect(classifyPaste(data('a'.repeat(MAX_INLINE_CHARS)))).toEqual({ type: 'plain' });
    expect(classifyPaste(data('a'.repeat(MAX_INLINE_CHARS + 1))).type).toBe('text');
    expect(classifyPaste(data(''))).toEqual({ type: 'withheld' });
    expect(classifyPaste(null)).toEqual({ type: 'withheld' });
  });

  it('is put where it would have been', () => {
    expect(insertText('ab', 'X', 1, 1)).toBe('aXb');
    expect(insertText('abc', 'X', 1, 2)).toBe('aXc');
    expect(insertText('ab', 'X', Infinity, Infinity)).toBe('abX');
  });

  it('is told from exports of conversations', async () => {
    const json = (text: string) => isExport(new File([text], 'a.json'));
    expect(await json('{"format": "inglenook.conversations"}')).toBe(true);
    expect(await json('[{"title": "x", "mapping": {}}]')).toBe(true);
    expect(await json('{"name": "package"}')).toBe(false);
    expect(await isExport(new File(['PK'], 'export.zip'))).toBe(true);
    expect(await isExport(new File(['"mapping":'], 'a.txt'))).toBe(false);
    expect(isExportPath('/home/x/conversations.json')).toBe(true);
    expect(isExportPath('/home/x/package.json')).toBe(false);
  });
});
