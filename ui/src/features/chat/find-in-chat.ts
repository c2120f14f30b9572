/** Find in chat: matches in the texts of messages and their ranges on the page. */

/** One match: its message, and its index within that message from 0. */
export interface FindHit {
  readonly message: string;
  readonly nth: number;
}

/** More matches are not counted. */
export const MAX_HITS = 5_000;

export function findHits(
  messages: readonly { id: string; role: string; text: string }[],
  query: string,
): FindHit[] {
  const wanted = lower(query);
  const hits: FindHit[] = [];
  if (wanted === '') return hits;
  for (const { id, role, text } of messages) {
    if (role === 'system') continue;
    const places = indexesOf(text, wanted);
    for (let nth = 0; nth < places.length && hits.length < MAX_HITS; nth++) {
      hits.push({ message: id, nth });
    }
  }
  return hits;
}

/** Finds matches in the rendered text below `root`, across inline elements. */
export function findRanges(root: Node, query: string): Range[] {
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
  return indexesOf(text, wanted).flatMap((at) => {
    const [from, to] = [place(at), place(at + wanted.length)];
    if (!from || !to) return [];
    const range = document.createRange();
    range.setStart(...from);
    range.setEnd(...to);
    return [range];
  });
}

function indexesOf(text: string, wanted: string): number[] {
  const places: number[] = [];
  if (wanted === '') return places;
  const all = lower(text);
  for (let at = all.indexOf(wanted); at >= 0; at = all.indexOf(wanted, at + wanted.length)) {
    places.push(at);
    if (places.length >= MAX_HITS) break;
  }
  return places;
}

/** A few letters change length in lower case; a text with such letters is compared as it is. */
function lower(text: string): string {
  const lowered = text.toLowerCase();
  return lowered.length === text.length ? lowered : text;
}
