/** Translates the application's texts for settings and errors; falls back to its English. */
import type { ErrorInfo, SettingKind, SettingRow } from '../backend/bindings';
import { i18n } from './i18n.svelte';
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
  if (kind.kind === 'text') return { ...kind, placeholder: text.placeholder ?? kind.placeholder };
  return kind;
}

/** Where the values stand in the English text of an error whose translations name them. */
const VALUES: Readonly<Partial<Record<ErrorCode, RegExp>>> = {
  'session.damaged':
    /^The chat database was damaged\. (?<chats>\d+) chats were recovered\. Missing: (?<titles>\d+) titles, at least (?<messages>\d+) messages; (?<places>\d+) places could not be read\. The damaged file is kept as (?<file>.*)\.$/,
};

/** Translates an error by its code if that loses nothing; else keeps the application's text. */
export function localizeError(error: Pick<ErrorInfo, 'code' | 'message' | 'remedy'>): ErrorText {
  const code = error.code as ErrorCode;
  const text = i18n.catalogue.errors[code];
  const pattern = VALUES[code];
  if (!text || !pattern) return text ?? error;
  const values = pattern.exec(error.message)?.groups;
  if (!values) return error;
  const message = text.message.replace(/\{(\w+)\}/g, (hole, name: string) => values[name] ?? hole);
  return { message, remedy: text.remedy };
}

/** Message and remedy in one line. */
export function localizeErrorInline(error: Pick<ErrorInfo, 'code' | 'message' | 'remedy'>): string {
  const { message, remedy } = localizeError(error);
  return `${message} ${remedy}`.trim();
}
