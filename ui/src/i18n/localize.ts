/** What the application says of settings and errors, in the page's language; English where there is nothing else. */
import type { ErrorInfo, SettingKind, SettingRow } from '../backend/bindings';
import { i18n } from './i18n.svelte';
import type { ErrorCode, ErrorText, SettingText } from './types';

/** The row in the words of the language; its section and group stay as they are: they are names of places. */
export function spoken(row: SettingRow): SettingRow {
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

/** By its code where a translation loses nothing; else as the application says it. */
export const told = (error: Pick<ErrorInfo, 'code' | 'message' | 'remedy'>): ErrorText =>
  i18n.catalogue.errors[error.code as ErrorCode] ?? error;

/** In a line. */
export function toldInLine(error: Pick<ErrorInfo, 'code' | 'message' | 'remedy'>): string {
  const { message, remedy } = told(error);
  return `${message} ${remedy}`.trim();
}
