/** Parser for server-sent events in a fetch body. */

export class SseParser {
  #rest = '';
  #data: string[] = [];

  /** Feeds a chunk of the stream. Returns the `data` of each event that it completes. */
  push(piece: string): string[] {
    const events: string[] = [];
    const text = this.#rest + piece;
    let from = 0;
    for (;;) {
      const end = text.indexOf('\n', from);
      if (end < 0) break;
      const line = text.slice(from, text[end - 1] === '\r' && end > from ? end - 1 : end);
      from = end + 1;
      if (line === '') {
        if (this.#data.length > 0) events.push(this.#data.join('\n'));
        this.#data = [];
      } else if (line.startsWith('data:')) {
        this.#data.push(line.slice(line[5] === ' ' ? 6 : 5));
      }
      // `event:`, `id:`, `retry:` and comments are not used.
    }
    this.#rest = text.slice(from);
    return events;
  }
}

/** Reads a whole body. Events of one network chunk are delivered together. */
export async function readEvents<E>(
  body: ReadableStream<Uint8Array>,
  onEvents: (events: E[]) => void,
): Promise<void> {
  const parser = new SseParser();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = parser.push(decoder.decode(value, { stream: true }));
    if (events.length > 0) {
      onEvents(
        events.flatMap((data) => {
          const parsed = JSON.parse(data) as E | E[];
          return Array.isArray(parsed) ? parsed : [parsed];
        }),
      );
    }
  }
}
