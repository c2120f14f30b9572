import { describe, expect, it } from 'vitest';
import type { HubModel, ModelFit, Offer } from '../../backend/bindings';
import {
  estimateBytes,
  isMultilingual,
  languageNames,
  NO_FILTER,
  passes,
  sortEntries,
  type EntrySort,
  type HubEntry,
  type HubFilter,
} from './hub-entries';

const model = (repository: string, over: Partial<HubModel> = {}): HubModel => ({
  repository,
  format: 'gguf',
  architecture: 'llama',
  parameters: 3e9,
  context_length: 8192,
  licence: 'apache-2.0',
  languages: [],
  modality: 'text',
  downloads: null,
  likes: null,
  updated_ms: null,
  gated: false,
  url: '',
  runs: true,
  offer: null,
  ...over,
});

const entry = (
  name: string,
  gb: number | null,
  tok_s: number | null,
  over: Partial<HubModel> = {},
): HubEntry => ({
  model: model(name, over),
  figures:
    gb === null
      ? null
      : {
          bytes: gb * 1e9,
          isEstimate: false,
          fit: { verdict: gb > 10 ? 'wont_fit' : 'runs_well', tok_s } as ModelFit,
        },
});

const offer = { licence: 'Llama 3.2', capabilities: ['tools', 'thinking'] } as unknown as Offer;
const ENTRIES = [
  entry('a/large', 12, 4, { languages: ['multilingual'] }),
  entry('a/known', 2, 30, { offer, languages: ['en', 'de'] }),
  entry('a/unknown', null, null, { licence: null }),
  entry('a/seeing', 5, 12, { modality: 'text_and_images' }),
];

describe('filters', () => {
  it.each<[Partial<HubFilter>, string[]]>([
    [{}, ['a/large', 'a/known', 'a/unknown', 'a/seeing']],
    [{ fits: true }, ['a/known', 'a/seeing']],
    [{ abilities: ['tools'] }, ['a/known']],
    [{ abilities: ['tools', 'images'] }, []],
    [{ abilities: ['images'] }, ['a/seeing']],
    [{ size: 'small' }, ['a/known']],
    [{ size: 'medium' }, ['a/seeing']],
    [{ size: 'large' }, ['a/large']],
    [{ open: true }, ['a/large', 'a/seeing']],
    [{ language: 'de' }, ['a/large', 'a/known']],
    [{ language: 'ja' }, ['a/large']],
  ])('%j', (filter, names) => {
    const found = ENTRIES.filter((it) => passes(it, { ...NO_FILTER, ...filter }));
    expect(found.map((it) => it.model.repository)).toEqual(names);
  });
});

it('takes the catalogue at its word for images', () => {
  const sees = { ...offer, capabilities: ['tools', 'images'] } as unknown as Offer;
  const filter: HubFilter = { ...NO_FILTER, abilities: ['images'] };
  expect(passes(entry('a/offered', 2, 30, { offer: sees }), filter)).toBe(true);
  expect(passes(entry('a/offered', 2, 30, { offer }), filter)).toBe(false);
});

it('names the languages of a model', () => {
  const names = new Map([
    ['en', 'English'],
    ['de', 'German'],
  ]);
  const it = model('a/b', { languages: ['de', 'xx', 'multilingual', 'en'] });
  expect(languageNames(it, (code) => names.get(code))).toEqual(['English', 'German']);
  expect(isMultilingual(it)).toBe(true);
});

describe('order', () => {
  it.each<[EntrySort, string[]]>([
    ['trending', ['a/large', 'a/known', 'a/unknown', 'a/seeing']],
    ['smallest', ['a/known', 'a/seeing', 'a/large', 'a/unknown']],
    ['fastest', ['a/known', 'a/seeing', 'a/large', 'a/unknown']],
  ])('%s', (sort, names) => {
    expect(sortEntries(ENTRIES, sort).map((it) => it.model.repository)).toEqual(names);
  });
});

it.each([
  [model('a/b'), 1.8e9],
  [model('a/b', { format: 'safetensors' }), 6e9],
  [model('a/b', { parameters: null }), null],
])('estimates a size from the parameters', (it, bytes) => {
  expect(estimateBytes(it)).toBe(bytes);
});
