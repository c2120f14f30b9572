/** What a catalogue holds. English is the source: its texts name the keys and the parameters of all the others. */
import type { en } from './en';

export const LANGUAGES = ['en', 'de', 'ja', 'ar'] as const;
export type Language = (typeof LANGUAGES)[number];

/** A text for each plural that the language has, chosen by the parameter `n`. */
export type Plural = Readonly<Partial<Record<Intl.LDMLPluralRule, string>>> & {
  readonly other: string;
};
/** A text; `{name}` stands for a parameter. */
export type Message = string | Plural;

type English = typeof en;
type Room = keyof English;

/** `room.message` */
export type Key = { [R in Room]: `${R}.${keyof English[R] & string}` }[Room];

/** All that a language has to say. */
export type Messages = { readonly [R in Room]: { readonly [M in keyof English[R]]: Message } };

/** The application's own words for a setting are English; these stand in their place. */
export interface SettingText {
  readonly label: string;
  readonly help: string;
  /** By value. */
  readonly options?: Readonly<Record<string, string>>;
  /** What the empty field means. */
  readonly absent?: string;
  readonly placeholder?: string;
}

export interface ErrorText {
  readonly message: string;
  readonly remedy: string;
}

/** Errors whose English text names no file, figure or name, so that a translation by code loses nothing. */
export const ERROR_CODES = [
  'ui.unreachable',
  'ui.unauthorized',
  'app.closed',
  'chat.cannot_continue',
  'compress.no_place',
  'compress.no_summary',
  'compress.nothing',
  'hub.busy',
  'import.backup',
  'import.broken',
  'import.empty',
  'import.stopped',
  'kv.memory_full',
  'look.busy',
  'look.not_loaded',
  'model.nan_logits',
  'model.removed',
  'preset.no_name',
  'session.busy',
  'session.disk_full',
  'session.empty',
  'session.not_a_question',
  'session.not_the_end',
  'session.nothing_to_retry',
  'turn.unknown',
  'worker.file_gone',
  'worker.hung',
  'worker.killed',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

export interface Catalogue {
  readonly messages: Messages;
  /** By key of the setting. */
  readonly settings: Readonly<Record<string, SettingText>>;
  /** By code. */
  readonly errors: Readonly<Record<ErrorCode, ErrorText>>;
}

type At<K extends Key> = K extends `${infer R extends Room}.${infer M}`
  ? M extends keyof English[R]
    ? English[R][M]
    : never
  : never;
type Named<S> = S extends `${string}{${infer N}}${infer Rest}` ? N | Named<Rest> : never;
type Names<M> = M extends string ? Named<M> : Named<M[keyof M]> | 'n';
type Params<N extends string> = { readonly [P in N]: P extends 'n' ? number : string | number };

/** What must be handed to `t` beside the key: nothing where the text has no parameter. */
export type Args<K extends Key> = [Names<At<K>>] extends [never] ? [] : [Params<Names<At<K>>>];
