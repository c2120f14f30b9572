/**
 * The search form of a text: two texts count as the same where their search forms are equal. The rule and its cases are
 * in `tests/fixtures/search-normalisation.json`; the search through the history follows it in Rust.
 */

/** Characters that Unicode calls default ignorable. */
const INVISIBLE =
  '\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f' +
  '\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\u{e0000}-\\u{e0fff}';
/** Accents, vowel points and the tatweel. */
const MARKS =
  '\\u0300-\\u036f\\u0483-\\u0487\\u0591-\\u05bd\\u05bf\\u05c1\\u05c2\\u05c4\\u05c5\\u05c7\\u0610-\\u061a\\u0640' +
  '\\u064b-\\u065f\\u0670\\u06d6-\\u06dc\\u06df-\\u06e4\\u06e7\\u06e8\\u06ea-\\u06ed\\u0711\\u0730-\\u074a' +
  '\\u0897-\\u089f\\u08ca-\\u08e1\\u08e3-\\u08ff\\u1ab0-\\u1aff\\u1dc0-\\u1dff\\u20d0-\\u20ff\\ufe20-\\ufe2f';
/* eslint-disable no-misleading-character-class -- each is meant by itself */
const DROPPED = new RegExp(`[${INVISIBLE}${MARKS}]`, 'gu');
/** Belongs to a letter, the Cyrillic short i. */
const BREVE = '\u0306';
/** A character with what belongs to it: marks, later letters of a Hangul syllable, invisible ones. */
const CLUSTER = new RegExp(
  `[^](?:[\\p{M}${INVISIBLE}${MARKS}\\u1160-\\u11ff\\ud7b0-\\ud7ff\\uff9e\\uff9f])*`,
  'gu',
);
/* eslint-enable no-misleading-character-class */
const ASCII = /^[\0-\u007f]*$/;

const REPLACED: Readonly<Record<string, string>> = {
  ...{ ß: 'ss', æ: 'ae', œ: 'oe', ø: 'o', đ: 'd', ł: 'l', ħ: 'h', ς: 'σ' },
  ...{ ٱ: 'ا', ى: 'ي', ی: 'ي', ة: 'ه', ک: 'ك' },
  ...{ '\u2018': "'", '\u2019': "'", '\u02bc': "'", '\u201c': '"', '\u201d': '"', '\u2010': '-' },
};

/** Without case, accents, vowel points, widths and invisible characters. */
export function searchForm(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  const letters = text
    .normalize('NFKD')
    .replace(DROPPED, (mark, at: number, whole: string) =>
      keepsBreve(mark, at, whole) ? mark : '',
    );
  let form = '';
  for (const letter of letters) {
    for (const low of letter.toLowerCase()) form += REPLACED[low] ?? low;
  }
  return form.normalize('NFC');
}

const keepsBreve = (mark: string, at: number, whole: string): boolean =>
  mark === BREVE && /[Ии]$/.test(whole.slice(Math.max(0, at - 8), at).replace(DROPPED, ''));

/** A text with its search form, whose matches can be found in the text itself. */
export interface SearchableText {
  readonly form: string;
  /** Range in the text of the cluster that each unit of the form comes from; null where both are the same. */
  readonly starts: Uint32Array | null;
  readonly ends: Uint32Array | null;
}

export function searchableText(text: string): SearchableText {
  if (ASCII.test(text)) return { form: text.toLowerCase(), starts: null, ends: null };
  let form = '';
  const starts: number[] = [];
  const ends: number[] = [];
  for (const { 0: cluster, index } of text.matchAll(CLUSTER)) {
    const part = searchForm(cluster);
    form += part;
    for (let n = 0; n < part.length; n++) {
      starts.push(index);
      ends.push(index + cluster.length);
    }
  }
  return { form, starts: Uint32Array.from(starts), ends: Uint32Array.from(ends) };
}

/** Ranges of `text` that match a search form, at most `limit`. Within a character that stands for two, once. */
export function findForm(
  { form, starts, ends }: SearchableText,
  wanted: string,
  limit: number,
): [number, number][] {
  const ranges: [number, number][] = [];
  if (wanted === '') return ranges;
  let at = form.indexOf(wanted);
  while (at >= 0 && ranges.length < limit) {
    const last = at + wanted.length - 1;
    const range: [number, number] = [starts?.[at] ?? at, ends?.[last] ?? last + 1];
    if (range[0] >= (ranges.at(-1)?.[1] ?? 0)) ranges.push(range);
    at = form.indexOf(wanted, last + 1);
  }
  return ranges;
}
