// @vitest-environment jsdom
import { beforeEach, describe, expect, it } from 'vitest';
import { MAX_QUEUED, MessageQueue } from './message-queue.svelte';
import { TEMPORARY } from './temporary-chat';

describe('MessageQueue', () => {
  beforeEach(() => sessionStorage.clear());

  const texts = (queue: MessageQueue, of: string) => queue.of(of).map((it) => it.text);

  it('keeps order, per conversation, over a reload', () => {
    const queue = new MessageQueue();
    queue.add('a', 'one');
    queue.add('a', 'two');
    queue.add('b', 'other');
    expect(texts(new MessageQueue(), 'a')).toEqual(['one', 'two']);
    const [first] = queue.of('a');
    expect(queue.take('a', first?.id ?? 0)?.text).toBe('one');
    if (first) queue.putBack('a', first);
    expect(texts(queue, 'a')).toEqual(['one', 'two']);
    queue.forget('a');
    expect(texts(new MessageQueue(), 'a')).toEqual([]);
    expect(texts(queue, 'b')).toEqual(['other']);
  });

  it('keeps what a temporary chat queues in memory only', () => {
    const queue = new MessageQueue();
    queue.add(TEMPORARY, 'between us');
    expect(texts(queue, TEMPORARY)).toEqual(['between us']);
    expect([sessionStorage.length, texts(new MessageQueue(), TEMPORARY)]).toEqual([0, []]);
  });

  it('ends somewhere', () => {
    const queue = new MessageQueue();
    for (let n = 0; n < MAX_QUEUED; n++) expect(queue.add('a', 'x')).toBe(true);
    expect(queue.add('a', 'x')).toBe(false);
  });
});
