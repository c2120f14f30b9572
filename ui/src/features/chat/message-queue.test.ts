// @vitest-environment jsdom
import { beforeEach, describe, expect, it } from 'vitest';
import { MOST_QUEUED, Queue } from './message-queue.svelte';
import { Selection } from '../conversations/selection.svelte';
import { lastCode } from '../../app/commands';
import { without } from '../../shared/hidden-characters';
import { TEMPORARY } from './temporary-chat';

describe('Queue', () => {
  beforeEach(() => sessionStorage.clear());

  const texts = (queue: Queue, of: string) => queue.of(of).map((it) => it.text);

  it('keeps order, per conversation, over a reload', () => {
    const queue = new Queue();
    queue.add('a', 'one');
    queue.add('a', 'two');
    queue.add('b', 'other');
    expect(texts(new Queue(), 'a')).toEqual(['one', 'two']);
    const [first] = queue.of('a');
    expect(queue.take('a', first?.id ?? 0)?.text).toBe('one');
    if (first) queue.back('a', first);
    expect(texts(queue, 'a')).toEqual(['one', 'two']);
    queue.forget('a');
    expect(texts(new Queue(), 'a')).toEqual([]);
    expect(texts(queue, 'b')).toEqual(['other']);
  });

  it('keeps what a temporary chat queues in memory only', () => {
    const queue = new Queue();
    queue.add(TEMPORARY, 'between us');
    expect(texts(queue, TEMPORARY)).toEqual(['between us']);
    expect([sessionStorage.length, texts(new Queue(), TEMPORARY)]).toEqual([0, []]);
  });

  it('ends somewhere', () => {
    const queue = new Queue();
    for (let n = 0; n < MOST_QUEUED; n++) expect(queue.add('a', 'x')).toBe(true);
    expect(queue.add('a', 'x')).toBe(false);
  });
});

describe('Selection', () => {
  it('toggles, reaches and starts over', () => {
    const selection = new Selection();
    const order = ['a', 'b', 'c', 'd'];
    selection.toggle('b');
    selection.reach('d', order);
    expect(selection.ids).toEqual(['b', 'c', 'd']);
    selection.toggle('c');
    expect(selection.ids).toEqual(['b', 'd']);
    selection.start('a');
    expect(selection.size).toBe(0);
    selection.reach('b', order);
    expect(selection.ids).toEqual(['a', 'b']);
  });
});

it('removes hidden characters by their names, and nothing else', () => {
  expect(without('a\u202Eb\u{E0041}c\u200Dd', ['U+202E', 'U+E0041'])).toBe('abc\u200Dd');
});

describe('lastCode', () => {
  it.each<[string[], string | null]>([
    [['no code'], null],
    [['```js\nlet x;\n```\nand\n```\nlast\n\none\n```\nend'], 'last\n\none'],
    [['```\nold\n```', 'nothing here'], 'old'],
    [['~~~\n```\n~~~'], '```'],
    [['```\nopen'], null],
  ])('%j', (list, expected) => {
    expect(lastCode(list)).toBe(expected);
  });
});
