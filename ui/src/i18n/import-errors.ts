/** Translates why chats could not be imported. The app's texts are known by their form; others stay as they are. */
import type { ErrorInfo } from '../backend/bindings';
import { t } from './i18n.svelte';
import type { ErrorText } from './types';

type Groups = Readonly<Record<string, string>>;
type Translate = (values: Groups) => string;

const value = (values: Groups, name: string): string => values[name] ?? '';

/** What is wrong with one chat; the program puts the chat's name before it. */
const REASONS: readonly (readonly [RegExp, Translate])[] = [
  [/^it is cut off; the download may be incomplete\.$/, () => t('imports.cut_off')],
  [/^it is too large\.$/, () => t('imports.too_large')],
  [/^it is not valid JSON \([^]*\)\.$/, () => t('imports.not_json')],
  [/^it has no messages\.$/, () => t('imports.no_messages')],
  [
    /^(?<n>\d+) messages that refer to each other in a cycle are left out\.$/,
    (it) => t('imports.cycle', { n: Number(value(it, 'n')) }),
  ],
  [
    /^message (?<n>\d+) has no sender and is left out\.$/,
    (it) => t('imports.no_sender', { n: Number(value(it, 'n')) }),
  ],
  [
    /^message (?<n>\d+) has the unknown sender "(?<sender>[^]*)" and is left out\.$/,
    (it) => t('imports.unknown_sender', { n: Number(value(it, 'n')), sender: value(it, 'sender') }),
  ],
  [
    /^it is (?:null|a truth value|a number|a text|a list), not a chat\.$/,
    () => t('imports.no_chat'),
  ],
  [/^the export format is unknown\. Inglenook imports [^]*$/, () => t('imports.unknown_format')],
  [/^it is incomplete: [^]*$/, () => t('imports.incomplete')],
];

/** What is wrong with a whole file. */
const FILES: readonly (readonly [RegExp, Translate])[] = [
  [/^This ZIP file contains no conversations\.json\.$/, () => t('imports.no_conversations')],
  [
    /^This ZIP file can't be read: (?<cause>[^]*?)\.$/,
    (it) => t('imports.unreadable_zip', { cause: value(it, 'cause') }),
  ],
  [/^This file is empty\.$/, () => t('imports.empty_file')],
  [/^This file is not valid JSON\.$/, () => t('imports.not_json')],
  [
    /^Unknown format (?<format>[^]*)\.$/,
    (it) => t('imports.foreign_format', { format: value(it, 'format') }),
  ],
  [
    /^This export has version (?<version>\d+), but this Inglenook reads versions up to (?<known>\d+)\.$/,
    (it) => t('imports.newer', { version: value(it, 'version'), known: value(it, 'known') }),
  ],
  [/^This Inglenook export is incomplete: [^]*$/, () => t('imports.own_incomplete')],
  [
    /^This file can't be read: (?<cause>[^]*?)\.$/,
    (it) => t('imports.unreadable_file', { cause: value(it, 'cause') }),
  ],
  [/^The file arrived damaged\.$/, () => t('imports.arrived_damaged')],
];

const REMEDIES: Readonly<Record<string, () => string>> = {
  'The other chats in the file are imported.': () => t('imports.others_imported'),
  'The other messages of the chat are imported.': () => t('imports.other_messages_imported'),
  'Export the chats again from the app they come from, or download the file again.': () =>
    t('imports.export_again'),
  'Export the chats again from the app they come from.': () => t('imports.export_again'),
  'Download it again.': () => t('imports.download_again'),
  'Choose a JSON export, or the ZIP file that contains it.': () => t('imports.choose_json'),
  'Choose the ZIP file exactly as you got it from ChatGPT or Claude.': () =>
    t('imports.choose_zip'),
  'Update Inglenook.': () => t('imports.update'),
  'Check the drive that holds it, then try again.': () => t('imports.check_drive'),
  'The download may be incomplete. Download it again, or unpack it and choose conversations.json.':
    () => t('imports.zip_again'),
  'Choose it again.': () => t('imports.choose_again'),
};

function translateByForm(
  forms: readonly (readonly [RegExp, Translate])[],
  text: string,
): string | undefined {
  for (const [form, translate] of forms) {
    const found = form.exec(text);
    if (found) return translate(found.groups ?? {});
  }
  return undefined;
}

/** A name, and what is wrong with its chat. Names may contain colons themselves. */
function namedReason(message: string): string | undefined {
  for (let at = message.indexOf(': '); at >= 0; at = message.indexOf(': ', at + 1)) {
    const rest = message.slice(at + 2);
    const why = translateByForm(REASONS, rest) ?? translateByForm(FILES, rest);
    if (why !== undefined) return t('imports.named', { name: message.slice(0, at), why });
  }
  return undefined;
}

/** The translation; null where the text has another form. */
export function importErrorText({
  message,
  remedy,
}: Pick<ErrorInfo, 'message' | 'remedy'>): ErrorText | null {
  const text =
    translateByForm(FILES, message) ?? translateByForm(REASONS, message) ?? namedReason(message);
  if (text === undefined) return null;
  return { message: text, remedy: REMEDIES[remedy]?.() ?? remedy };
}
