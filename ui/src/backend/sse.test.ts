import { describe, expect, it } from 'vitest';
import { SseParser, readEvents } from './sse';

const STREAM =
  ': hello\n\nevent: x\nid: 7\ndata: {"a":1}\n\ndata: {"b":\ndata: "ü"}\r\n\r\ndata:{"c":3}\n\n';
const EVENTS = ['{"a":1}', '{"b":\n"ü"}', '{"c":3}'];

describe('SseParser', () => {
  it('reads a stream whole', () => {
    expect(new SseParser().push(STREAM)).toEqual(EVENTS);
  });

  it('reads it however it is cut', () => {
    for (let cut = 0; cut <= STREAM.length; cut++) {
      const parser = new SseParser();
      const got = [...parser.push(STREAM.slice(0, cut)), ...parser.push(STREAM.slice(cut))];
      expect(got).toEqual(EVENTS);
    }
  });

  it('keeps an event to itself until it is complete', () => {
    expect(new SseParser().push('data: 1\n')).toEqual([]);
  });
});

describe('readEvents', () => {
  it('survives a character cut in two', async () => {
    const bytes = new TextEncoder().encode(STREAM);
    for (const cut of [40, 41, 42, 43, 44]) {
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(bytes.slice(0, cut));
          controller.enqueue(bytes.slice(cut));
          controller.close();
        },
      });
      const got: unknown[] = [];
      await readEvents(body, (events) => got.push(...events));
      expect(got).toEqual([{ a: 1 }, { b: 'ü' }, { c: 3 }]);
    }
  });
});
