/** Models for download with their size and fit; filters and order of the list. */
import type { Capability, HubModel, HubSort, ModelFit, OfferFit } from '../../backend/bindings';

/** What is known of a model's usual file before its repository is asked. */
export interface HubFigures {
  readonly bytes: number;
  /** Computed from the number of parameters; the catalogue's sizes are exact. */
  readonly isEstimate: boolean;
  readonly fit: ModelFit;
}

export interface HubEntry {
  readonly model: HubModel;
  /** Null: neither size nor parameters are known. */
  readonly figures: HubFigures | null;
}

/** Bytes per parameter of the usual file: 4-bit GGUF, or 16-bit safetensors. */
const BYTES_PER_PARAMETER = { gguf: 0.6, safetensors: 2 } as const;

export const estimateBytes = ({ parameters, format }: HubModel): number | null =>
  parameters ? Math.round(parameters * BYTES_PER_PARAMETER[format]) : null;

export const figuresOfOffer = ({ facts, fit }: OfferFit): HubFigures => ({
  bytes: facts.bytes,
  isEstimate: false,
  fit,
});

export const SIZES = ['any', 'small', 'medium', 'large'] as const;
export type SizeFilter = (typeof SIZES)[number];
/** Limits of the size filter: what a phone-sized, a usual and a large memory hold. */
export const SMALL_BYTES = 3e9;
export const MEDIUM_BYTES = 8e9;

export const ABILITIES = ['tools', 'thinking', 'code', 'images'] as const;
export type Ability = Capability;

/** Languages that the filter offers: the interface's own, and those that most models name. */
export const LANGUAGES: readonly string[] = [
  ...['ar', 'de', 'en', 'es', 'fr', 'hi', 'id', 'it', 'ja', 'ko'],
  ...['nl', 'pl', 'pt', 'ru', 'sv', 'th', 'tr', 'uk', 'vi', 'zh'],
];
/** What makers of models write instead of a long list of languages. */
const MANY_LANGUAGES = 'multilingual';

export interface HubFilter {
  /** Only models that fit this computer. */
  readonly fits: boolean;
  /** The model has all of these. */
  readonly abilities: readonly Ability[];
  readonly size: SizeFilter;
  /** The model's maker names this language, as a code of two letters; empty: any. */
  readonly language: string;
  /** Only licences without conditions of the vendor: Apache, MIT, BSD. */
  readonly open: boolean;
}

export const NO_FILTER: HubFilter = {
  fits: false,
  abilities: [],
  size: 'any',
  language: '',
  open: false,
};

const OPEN_LICENCE = /apache|\bmit\b|bsd/i;

export const licenceOf = ({ offer, licence }: HubModel): string => offer?.licence ?? licence ?? '';

function hasAbility({ modality, offer }: HubModel, ability: Ability): boolean {
  if (offer?.capabilities.includes(ability)) return true;
  return ability === 'images' && (modality === 'text_and_images' || modality === 'anything');
}

const speaks = ({ languages }: HubModel, language: string): boolean =>
  language === '' || languages.includes(language) || languages.includes(MANY_LANGUAGES);

/** The languages that a model's page names, by their names; codes without a name are left out. */
export function languageNames({ languages }: HubModel, nameOf: NameOfLanguage): string[] {
  const names = languages.filter((it) => it !== MANY_LANGUAGES).map(nameOf);
  return names.filter((it) => it !== undefined).toSorted((a, b) => a.localeCompare(b));
}

type NameOfLanguage = (code: string) => string | undefined;

export const isMultilingual = ({ languages }: HubModel): boolean =>
  languages.includes(MANY_LANGUAGES);

function hasSize(bytes: number | undefined, size: SizeFilter): boolean {
  if (size === 'any') return true;
  if (bytes === undefined) return false;
  if (size === 'small') return bytes <= SMALL_BYTES;
  if (size === 'medium') return bytes > SMALL_BYTES && bytes <= MEDIUM_BYTES;
  return bytes > MEDIUM_BYTES;
}

/** Whether a model passes a filter. What is not known of it does not pass. */
export function passes({ model, figures }: HubEntry, filter: HubFilter): boolean {
  if (filter.fits && (figures === null || figures.fit.verdict === 'wont_fit')) return false;
  if (filter.open && !OPEN_LICENCE.test(licenceOf(model))) return false;
  if (!speaks(model, filter.language)) return false;
  return (
    hasSize(figures?.bytes, filter.size) &&
    filter.abilities.every((ability) => hasAbility(model, ability))
  );
}

/** Orders of the hub, and orders by what is known here. */
export type EntrySort = HubSort | 'smallest' | 'fastest';

export const isLocalSort = (sort: EntrySort): sort is 'smallest' | 'fastest' =>
  sort === 'smallest' || sort === 'fastest';

/** Sorts by size or speed, unknown ones last; other orders come from the hub. */
export function sortEntries(entries: readonly HubEntry[], sort: EntrySort): HubEntry[] {
  if (!isLocalSort(sort)) return [...entries];
  const value = ({ figures }: HubEntry): number =>
    sort === 'smallest' ? (figures?.bytes ?? Infinity) : -(figures?.fit.tok_s ?? -Infinity);
  return entries.toSorted((a, b) => compare(value(a), value(b)));
}

const compare = (a: number, b: number): number => (a === b ? 0 : a < b ? -1 : 1);
