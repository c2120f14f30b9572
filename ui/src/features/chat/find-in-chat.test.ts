// @vitest-environment jsdom
import { describe, expect, it } from 'vitest';
import { findHits, MAX_HITS, findRanges } from './find-in-chat';

const message = (id: string, text: string, role = 'user') => ({ id, text, role });

describe('findHits', () => {
  it('counts each occurrence, in order, whatever its case', () => {
    const messages = [
      message('a', 'Fire and fire'),
      message('s', 'fire', 'system'),
      message('b', 'FIRE'),
    ];
    expect(findHits(messages, 'fire')).toEqual([
      { message: 'a', nth: 0 },
      { message: 'a', nth: 1 },
      { message: 'b', nth: 0 },
    ]);
  });

  it('finds nothing for nothing', () => {
    expect(findHits([message('a', 'x')], '')).toEqual([]);
  });

  it('stops counting somewhere', () => {
    expect(findHits([message('a', 'x'.repeat(9000))], 'x')).toHaveLength(MAX_HITS);
  });
});

describe('findRanges', () => {
  it('finds words across elements', () => {
    const root = document.createElement('div');
    root.innerHTML = '<p>Keep the <b>fi</b>re on. <i>Fire!</i></p>';
    expect(findRanges(root, 'fire').map(String)).toEqual(['fire', 'Fire']);
    expect(findRanges(root, 'the fire on').map(String)).toEqual(['the fire on']);
  });
});
