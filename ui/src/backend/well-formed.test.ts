import { describe, expect, it } from 'vitest';
import { wellFormed } from './well-formed';

describe('what is sent to the application', () => {
  it('holds no halves of characters', () => {
    const cases: [unknown, unknown][] = [
      ['a\ud83d', 'a\ufffd'],
      ['\ude00b', '\ufffdb'],
      ['\ud83d\ude00', '😀'],
      ['\ud83d\ud83d\ude00', '\ufffd😀'],
      [
        { text: 'x\ud83d', n: 1, none: null, list: ['\ud83d', true] },
        { text: 'x\ufffd', n: 1, none: null, list: ['\ufffd', true] },
      ],
      [undefined, undefined],
    ];
    for (const [sent, expected] of cases) expect(wellFormed(sent)).toEqual(expected);
  });

  it('keeps what is no plain data', () => {
    const channel = new (class Channel {
      id = 1;
    })();
    expect(wellFormed({ channel }).channel).toBe(channel);
  });
});
