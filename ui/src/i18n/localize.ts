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

/** Translates an error by its code if that loses nothing; else keeps the application's text. */
export const localizeError = (error: Pick<ErrorInfo, 'code' | 'message' | 'remedy'>): ErrorText =>
  i18n.catalogue.errors[error.code as ErrorCode] ?? error;

/** Message and remedy in one line. */
export function localizeErrorInline(error: Pick<ErrorInfo, 'code' | 'message' | 'remedy'>): string {
  const { message, remedy } = localizeError(error);
  return `${message} ${remedy}`.trim();
}
