/** Types of catalogues. English is the source of the keys and parameters of all languages. */
import type { en } from './en';

export const LANGUAGES = ['en', 'de', 'ja', 'ar'] as const;
export type Language = (typeof LANGUAGES)[number];

/** A text for each plural form of the language, chosen by the parameter `n`. */
export type Plural = Readonly<Partial<Record<Intl.LDMLPluralRule, string>>> & {
  readonly other: string;
};
/** A text; `{name}` is a parameter. */
export type Message = string | Plural;

type English = typeof en;
type TextModule = keyof English;

/** `module.message` */
export type Key = { [R in TextModule]: `${R}.${keyof English[R] & string}` }[TextModule];

/** All texts of a language. */
export type Messages = {
  readonly [R in TextModule]: { readonly [M in keyof English[R]]: Message };
};

/** Translation of a setting's English texts. */
export interface SettingText {
  readonly label: string;
  readonly help: string;
  /** Labels of choices, by value. */
  readonly options?: Readonly<Record<string, string>>;
  /** Meaning of an empty field. */
  readonly absent?: string;
  readonly placeholder?: string;
}

export interface ErrorText {
  readonly message: string;
  readonly remedy: string;
}

/**
 * Codes of errors whose English text contains no file, number or name, so that a translation by code loses nothing; or
 * whose text has the form that `localize.ts` knows.
 */
export const ERROR_CODES = [
  'ui.unreachable',
  'ui.unauthorized',
  'app.closed',
  'attachment.scanned',
  'chat.cannot_continue',
  'compress.no_place',
  'compress.no_summary',
  'compress.nothing',
  'hub.busy',
  'import.backup',
  'import.empty',
  'import.stopped',
  'kv.memory_full',
  'look.busy',
  'look.not_loaded',
  'model.nan_logits',
  'model.removed',
  'preset.no_name',
  'session.busy',
  'session.damaged',
  'session.disk_full',
  'session.empty',
  'session.index_rebuilt',
  'session.not_a_question',
  'session.not_the_end',
  'session.nothing_to_retry',
  'session.out_of_memory',
  'session.read_only',
  'shell.clipboard',
  'shell.link',
  'tools.form',
  'tools.form_closed',
  'tools.sign_in',
  'tools.sign_in_canceled',
  'tools.sign_in_denied',
  'tools.sign_in_expired',
  'tools.sign_in_timeout',
  'turn.unknown',
  'update.busy',
  'update.by_hand',
  'update.client',
  'update.download',
  'update.format',
  'update.install',
  'update.no_address',
  'update.no_list',
  'update.none',
  'update.not_here',
  'update.not_ready',
  'update.platform',
  'update.redirect',
  'update.redirects',
  'update.signature',
  'update.too_large',
  'update.unreachable',
  'worker.file_gone',
  'worker.hung',
  'worker.killed',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

export interface Catalogue {
  readonly messages: Messages;
  /** By setting key. */
  readonly settings: Readonly<Record<string, SettingText>>;
  /** By error code. */
  readonly errors: Readonly<Record<ErrorCode, ErrorText>>;
}

type At<K extends Key> = K extends `${infer R extends TextModule}.${infer M}`
  ? M extends keyof English[R]
    ? English[R][M]
    : never
  : never;
type ParameterNames<S> = S extends `${string}{${infer N}}${infer Rest}`
  ? N | ParameterNames<Rest>
  : never;
type Names<M> = M extends string ? ParameterNames<M> : ParameterNames<M[keyof M]> | 'n';
type Params<N extends string> = { readonly [P in N]: P extends 'n' ? number : string | number };

/** Arguments of `t` after the key; none if the text has no parameters. */
export type Args<K extends Key> = [Names<At<K>>] extends [never] ? [] : [Params<Names<At<K>>>];
