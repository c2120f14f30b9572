import { describe, expect, it } from 'vitest';
import { splitAtRange } from './highlight-range';

describe('a passage in a text', () => {
  it('is found by its bytes', () => {
    const text = 'Über den Fluß\nund weiter';
    const bytes = (part: string) => new TextEncoder().encode(part).length;
    const start = bytes('Über den ');
    const passage = { start, end: start + bytes('Fluß') };
    expect(splitAtRange(text, 0, passage)).toEqual({
      before: 'Über den ',
      mark: 'Fluß',
      after: '\nund weiter',
    });
    const moved = { start: passage.start + 100, end: passage.end + 100 };
    expect(splitAtRange(text, 100, moved).mark).toBe('Fluß');
    expect(splitAtRange(text, 500, passage)).toEqual({ before: text, mark: '', after: '' });
    expect(splitAtRange(text, 0, null).before).toBe(text);
  });
});
