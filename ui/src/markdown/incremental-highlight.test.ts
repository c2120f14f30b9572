import { describe, expect, it, vi } from 'vitest';
import { IncrementalHighlighter } from './incremental-highlight';
import { highlight } from './highlight';

// Sanitising is tested on its own, and slow without a browser.
vi.mock('./sanitise', () => ({ sanitise: (html: string) => html }));

const FUNCTION = (n: number) =>
  `fn part_${n}(x: u32) -> u32 {\n    // one of many\n    x * ${n}\n}\n`;
const LONG = Array.from({ length: 300 }, (_, n) => FUNCTION(n)).join('\n');

const text = (html: string) =>
  html
    .replace(/<[^>]*>/g, '')
    .replace(/&(lt|gt|quot|#x27|#39|amp);/g, (_, name: string) => ENTITIES[name] ?? '');

const ENTITIES: Record<string, string> = {
  ...{ lt: '<', gt: '>', quot: '"', '#x27': "'", '#39': "'", amp: '&' },
};

describe('IncrementalHighlighter', () => {
  it('shows every character, however the code grew', () => {
    for (const step of [997, 5_003]) {
      const colouring = new IncrementalHighlighter();
      for (let end = 0; end < LONG.length; end += step) {
        const pieces = colouring.update(LONG.slice(0, end), 'rust', true, highlight);
        expect(text(pieces.map((it) => it.html).join(''))).toBe(LONG.slice(0, end));
      }
      const pieces = colouring.update(LONG, 'rust', false, highlight);
      expect(text(pieces.map((it) => it.html).join(''))).toBe(LONG);
    }
  });

  it('colours what is finished once', () => {
    let coloured = 0;
    const counting = (code: string, language: string) => {
      coloured += code.length;
      return highlight(code, language);
    };
    const colouring = new IncrementalHighlighter();
    for (let end = 0; end < LONG.length; end += 400) {
      colouring.update(LONG.slice(0, end), 'rust', true, counting);
    }
    // Every step highlights only the last piece again.
    expect(coloured).toBeLessThan((LONG.length / 400) * 6_500);
    const before = coloured;
    colouring.update(LONG, 'rust', false, counting);
    expect(coloured - before).toBeLessThan(13_000);
  });

  it('colours short code as a whole in the end', () => {
    const code = `/*\n${'text\n\nText at the margin\n'.repeat(150)}*/\nfn f() {}\n`;
    const colouring = new IncrementalHighlighter();
    for (let end = 0; end < code.length; end += 50) {
      colouring.update(code.slice(0, end), 'rust', true, highlight);
    }
    const pieces = colouring.update(code, 'rust', false, highlight);
    expect(pieces.map((it) => it.html).join('')).toBe(highlight(code, 'rust'));
  });

  it('starts over for other code', () => {
    const colouring = new IncrementalHighlighter();
    colouring.update(LONG, 'rust', true, highlight);
    const pieces = colouring.update('let x;', 'rust', true, null);
    expect(pieces.map((it) => it.html)).toEqual(['let x;']);
  });
});
