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

describe('what is shown', () => {
  const answer = [
    'A **bo**ld word, a [link](https://example.org/bold), `code`.',
    '',
    '```rust',
    'let bold = 1;',
    '```',
  ].join('\n');

  it.each([
    ['bold', 2],
    ['**', 0],
    ['https://', 0],
    ['link', 1],
    ['rust', 0],
    ['```', 0],
  ])('%j is found %d times', (query, times) => {
    expect(findHits([message('a', answer, 'assistant')], query)).toHaveLength(times);
  });

  it('is what users wrote, mark for mark', () => {
    expect(findHits([message('a', answer)], '**')).toHaveLength(2);
  });

  it('leaves out the head of a code block', () => {
    const root = document.createElement('div');
    root.innerHTML =
      '<div class="md-code"><div class="md-code-head"><span>rust</span><button>Copy</button></div>' +
      '<pre><code>copy rust</code></pre></div>';
    expect(findRanges(root, 'rust').map((it) => it.startContainer.nodeValue)).toEqual([
      'copy rust',
    ]);
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

describe('texts in other forms', () => {
  it('are counted', () => {
    const messages = [
      message('a', 'Maße MASSE'),
      message('b', 'مُحَمَّدٌ'),
      message('c', '\u1106\u116e\u11ab'),
    ];
    expect(findHits(messages, 'maße')).toHaveLength(2);
    expect(findHits(messages, 'محمد')).toEqual([{ message: 'b', nth: 0 }]);
    expect(findHits(messages, '문')).toEqual([{ message: 'c', nth: 0 }]);
  });

  it('are marked where they stand, across elements', () => {
    const root = document.createElement('div');
    root.innerHTML = '<p>İ die Ma<b>ße</b> und <i>Ｍａ</i>SSE, מַסֶּה</p>';
    expect(findRanges(root, 'masse').map(String)).toEqual(['Maße', 'ＭａSSE']);
    expect(findRanges(root, 'מסה').map(String)).toEqual(['מַסֶּה']);
    const [first] = findRanges(root, 'Masse');
    expect([first?.endContainer.nodeValue, first?.endOffset]).toEqual(['ße', 2]);
  });

  it('are searched again once they have changed', () => {
    const one = { id: 'a', role: 'user', text: 'old' };
    expect(findHits([one], 'new')).toHaveLength(0);
    one.text = 'new';
    expect(findHits([one], 'new')).toHaveLength(1);
  });
});
