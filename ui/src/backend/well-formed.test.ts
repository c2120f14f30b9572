import { describe, expect, it } from 'vitest';
import { wellFormed } from './well-formed';

describe('well-formed arguments', () => {
  const cases: [unknown, unknown][] = [
    ['half \ud83d', 'half \ufffd'],
    ['\ude00 half', '\ufffd half'],
    ['😀', '😀'],
    ['\ud83d😀\ude00', '\ufffd😀\ufffd'],
    [
      { text: '\ud83d', list: ['a', { b: '\udc00' }] },
      { text: '\ufffd', list: ['a', { b: '\ufffd' }] },
    ],
    [{ '\ud83d': 1 }, { '\ufffd': 1 }],
    [null, null],
    [7, 7],
    [undefined, undefined],
  ];
  it.each(cases)('%j', (value, expected) => {
    expect(wellFormed(value)).toEqual(expected);
  });

  it('leaves objects that are no plain data', () => {
    const channel = new (class Channel {
      text = '\ud83d';
    })();
    expect(wellFormed({ channel }).channel).toBe(channel);
  });
});
