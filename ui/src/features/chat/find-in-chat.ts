/** Find in chat: matches in what is shown of messages and their ranges on the page, by the search form of both. */
import { shownText, textNodes } from '../../markdown/shown-text';
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

/** Characters that Markdown puts between the letters of a word. */
const MARKS = /[*_`~\\]+/g;

/** A message as it is searched again with every letter of the query. */
interface KnownText {
  readonly text: string;
  /** Search form without marks: tells cheaply which messages are worth rendering. */
  readonly rough: string;
  shown: SearchableText | null;
}

const known = new WeakMap<SearchedMessage, KnownText>();

function knownText(message: SearchedMessage): KnownText {
  const { text } = message;
  const before = known.get(message);
  if (before?.text === text) return before;
  const now = { text, rough: searchForm(text.replace(MARKS, '')), shown: null };
  known.set(message, now);
  return now;
}

/** What is shown of a message. What users write is shown as it is. */
function shownOf(message: SearchedMessage, entry: KnownText): SearchableText {
  entry.shown ??= searchableText(message.role === 'assistant' ? shownText(entry.text) : entry.text);
  return entry.shown;
}

export function findHits(messages: readonly SearchedMessage[], query: string): FindHit[] {
  const wanted = searchForm(query);
  const words = wanted.replace(MARKS, ' ').split(/\s+/).filter(Boolean);
  const hits: FindHit[] = [];
  for (const message of messages) {
    if (message.role === 'system' || wanted === '') continue;
    const entry = knownText(message);
    if (!words.every((word) => entry.rough.includes(word))) continue;
    const count = findForm(shownOf(message, entry), wanted, MAX_HITS - hits.length).length;
    for (let nth = 0; nth < count; nth++) hits.push({ message: message.id, nth });
  }
  return hits;
}

/** Finds matches in the rendered text below `root`, across inline elements. */
export function findRanges(root: Node, query: string): Range[] {
  const nodes = textNodes(root);
  const starts: number[] = [];
  let text = '';
  for (const node of nodes) {
    starts.push(text.length);
    text += node.data;
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
