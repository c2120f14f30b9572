/** Find in chat: matches in the texts of messages and their ranges on the page, by the search form of both. */
import {
  findForm,
  searchableText,
  searchForm,
  type SearchableText,
} from '../../shared/search-form';

/** One match: its message, and its index within that message from 0. */
export interface FindHit {
  readonly message: string;
  readonly nth: number;
}

/** More matches are not counted. */
export const MAX_HITS = 5_000;

interface SearchedMessage {
  readonly id: string;
  readonly role: string;
  readonly text: string;
}

/** Texts of messages are searched again with every letter of the query. */
const known = new WeakMap<SearchedMessage, { text: string; searchable: SearchableText }>();

function searchableMessage(message: SearchedMessage): SearchableText {
  const { text } = message;
  const before = known.get(message);
  if (before?.text === text) return before.searchable;
  const searchable = searchableText(text);
  known.set(message, { text, searchable });
  return searchable;
}

export function findHits(messages: readonly SearchedMessage[], query: string): FindHit[] {
  const wanted = searchForm(query);
  const hits: FindHit[] = [];
  for (const message of messages) {
    if (message.role === 'system' || wanted === '') continue;
    const count = findForm(searchableMessage(message), wanted, MAX_HITS - hits.length).length;
    for (let nth = 0; nth < count; nth++) hits.push({ message: message.id, nth });
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
  /** The last node that begins before `at`, or at it. */
  let index = 0;
  const place = (at: number, isEnd: boolean): [Text, number] | null => {
    const isWithin = (start: number | undefined) =>
      start !== undefined && (isEnd ? start < at : start <= at);
    while (isWithin(starts[index + 1])) index++;
    const node = nodes[index];
    return node ? [node, Math.min(at - (starts[index] ?? 0), node.length)] : null;
  };
  const found = findForm(searchableText(text), searchForm(query), MAX_HITS);
  return found.flatMap(([start, end]) => {
    const [from, to] = [place(start, false), place(end, true)];
    if (!from || !to) return [];
    const range = document.createRange();
    range.setStart(...from);
    range.setEnd(...to);
    return [range];
  });
}
