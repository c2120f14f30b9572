/** Translates the application's texts for settings and errors; falls back to its English. */
import type { ErrorInfo, SettingKind, SettingRow } from '../backend/bindings';
import { i18n, t } from './i18n.svelte';
import { importErrorText } from './import-errors';
import type { ErrorCode, ErrorText, SettingText } from './types';

/** Translates a row. Section and group stay unchanged: they are identifiers. */
export function localizeSetting(row: SettingRow): SettingRow {
  const text = i18n.catalogue.settings[row.key];
  if (!text) return row;
  return { ...row, label: text.label, help: text.help, kind: kindOf(row.kind, text) };
}

function kindOf(kind: SettingKind, text: SettingText): SettingKind {
  if (kind.kind === 'choice') {
    const label = (it: { value: string; label: string }) => text.options?.[it.value] ?? it.label;
    return { ...kind, options: kind.options.map((it) => ({ ...it, label: label(it) })) };
  }
  if (kind.kind === 'integer' && kind.absent !== null) {
    return { ...kind, absent: text.absent ?? kind.absent };
  }
  if (kind.kind === 'text' || kind.kind === 'long_text') {
    return { ...kind, placeholder: text.placeholder ?? kind.placeholder };
  }
  return kind;
}

/** Where the values stand in the English text of an error whose translations name them. */
const VALUES: Readonly<Partial<Record<ErrorCode, RegExp>>> = {
  'attachment.scanned':
    /^The pages of (?<name>.*) are scanned, and the model (?<model>.*) can't see images\.$/,
  'session.damaged':
    /^The chat database was damaged\. (?<chats>\d+) chats were recovered\. Missing: (?<titles>\d+) titles, at least (?<messages>\d+) messages; (?<places>\d+) places could not be read\. The damaged file is kept as (?<file>.*)\.$/,
  'tools.sign_in': /^(?<name>.*) requires you to sign in\.$/,
  'tools.sign_in_canceled': /^The sign-in to (?<name>.*) was canceled\.$/,
  'tools.sign_in_denied': /^You did not allow access to (?<name>.*)\.$/,
  'tools.sign_in_expired': /^Your sign-in to (?<name>.*) has expired\.$/,
  'tools.sign_in_timeout':
    /^The sign-in to (?<name>.*) was not completed within (?<minutes>\d+) minutes\.$/,
  'update.client': /^Updates cannot be looked for: (?<cause>[^]*)\.$/,
  'update.download': /^The download from (?<place>.*?) broke off: (?<cause>[^]*)\.$/,
  'update.format': /^(?<place>.*?) sent no list of versions: (?<cause>[^]*)\.$/,
  'update.install': /^The new version could not be installed: (?<cause>[^]*)\.$/,
  'update.no_list': /^(?<place>.*) has no list of versions\.$/,
  'update.platform': /^(?<place>.*) has a newer version, but not for this kind /,
  'update.redirect': /^The update server leads to (?<place>.*), which is not encrypted\.$/,
  'update.signature': /^The new version from (?<place>.*?) was not accepted: (?<cause>[^]*)\.$/,
  'update.too_large': /^The update from (?<place>.*) is larger than (?<size>\d+) MB\.$/,
};

/** A server that can't be reached: its name, and the cause in the words of the system's network code. */
const OUT_OF_REACH = /^(?<place>.+?) can't be reached: (?<cause>[^]+)\.$/;
const UNTRUSTED = /^The connection to (?<place>.+?) can't be trusted: (?<cause>[^]+)\.$/;

/** Codes whose texts `import-errors.ts` knows. */
const OF_IMPORTS: ReadonlySet<string> = new Set([
  'import.broken',
  'import.conversation',
  'import.newer',
  'import.too_large',
  'import.unknown',
  'import.zip',
]);

type ErrorTexts = Pick<ErrorInfo, 'code' | 'message' | 'remedy'>;

/** The cause of a failed connection, which is no text for people; empty for other errors. */
export const errorCause = ({ message }: Pick<ErrorInfo, 'message'>): string =>
  (OUT_OF_REACH.exec(message) ?? UNTRUSTED.exec(message))?.groups?.cause ?? '';

/** A failed connection without its cause. Null: another error. */
function connectionText({ code, message: english, remedy }: ErrorTexts): ErrorText | null {
  const place = OUT_OF_REACH.exec(english)?.groups?.place;
  if (place !== undefined) {
    const message = t('common.cant_reach', { place });
    const owner = code.split('.')[0];
    if (owner === 'hub') return { message, remedy: t('common.cant_reach_hub_remedy') };
    if (owner === 'remote') return { message, remedy: t('common.cant_reach_server_remedy') };
    const own = i18n.catalogue.errors[code as ErrorCode];
    return { message, remedy: own?.remedy ?? remedy };
  }
  const untrusted = UNTRUSTED.exec(english)?.groups?.place;
  if (untrusted === undefined) return null;
  return {
    message: t('common.cant_trust', { place: untrusted }),
    remedy: t('common.cant_trust_remedy'),
  };
}

/** Translates an error by its code if that loses nothing; else keeps the application's text. */
export function localizeError(error: ErrorTexts): ErrorText {
  const connection = connectionText(error);
  if (connection) return connection;
  const code = error.code as ErrorCode;
  // These say what is wrong where: a translation by code would lose it.
  if (OF_IMPORTS.has(code)) return importErrorText(error) ?? error;
  const text = i18n.catalogue.errors[code];
  const pattern = VALUES[code];
  if (!text || !pattern) return text ?? error;
  const values = pattern.exec(error.message)?.groups;
  if (!values) return error;
  const message = text.message.replace(/\{(\w+)\}/g, (hole, name: string) => values[name] ?? hole);
  return { message, remedy: text.remedy };
}

/** Message and remedy in one line. */
export function localizeErrorInline(error: ErrorTexts): string {
  const { message, remedy } = localizeError(error);
  return `${message} ${remedy}`.trim();
}
