/** Words in the messages of a chat: where they are in the texts, and where on the page. */

/** One occurrence: the how-manieth in which message, counted from 0. */
export interface Hit {
  readonly message: string;
  readonly nth: number;
}

/** More are not counted. */
export const MOST_HITS = 5_000;

export function hitsIn(
  messages: readonly { id: string; role: string; text: string }[],
  query: string,
): Hit[] {
  const wanted = lower(query);
  const hits: Hit[] = [];
  if (wanted === '') return hits;
  for (const { id, role, text } of messages) {
    if (role === 'system') continue;
    const places = placesIn(text, wanted);
    for (let nth = 0; nth < places.length && hits.length < MOST_HITS; nth++) {
      hits.push({ message: id, nth });
    }
  }
  return hits;
}

/** The occurrences under `root` as it is shown, across bold words and links. */
export function rangesIn(root: Node, query: string): Range[] {
  const nodes: Text[] = [];
  const starts: number[] = [];
  let text = '';
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    starts.push(text.length);
    nodes.push(node as Text);
    text += node.nodeValue ?? '';
  }
  const place = (at: number): [Text, number] | null => {
    let index = starts.length - 1;
    while (index > 0 && (starts[index] ?? 0) > at) index--;
    const node = nodes[index];
    return node ? [node, Math.min(at - (starts[index] ?? 0), node.length)] : null;
  };
  const wanted = lower(query);
  return placesIn(text, wanted).flatMap((at) => {
    const [from, to] = [place(at), place(at + wanted.length)];
    if (!from || !to) return [];
    const range = document.createRange();
    range.setStart(...from);
    range.setEnd(...to);
    return [range];
  });
}

function placesIn(text: string, wanted: string): number[] {
  const places: number[] = [];
  if (wanted === '') return places;
  const all = lower(text);
  for (let at = all.indexOf(wanted); at >= 0; at = all.indexOf(wanted, at + wanted.length)) {
    places.push(at);
    if (places.length >= MOST_HITS) break;
  }
  return places;
}

/** A few letters change their length; a text with such is compared as it is. */
function lower(text: string): string {
  const lowered = text.toLowerCase();
  return lowered.length === text.length ? lowered : text;
}
