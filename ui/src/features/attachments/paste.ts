/** What is pasted or dropped: files, a text too long to stand in the message box, or nothing special. */

/** A text with more characters becomes a file of its own. */
export const LONG_TEXT = 2500;

export type Pasted =
  | { readonly type: 'files'; readonly files: readonly File[] }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'plain' };

/** Office programs put a picture of the text beside it: there the text is meant. */
export function pasted(data: DataTransfer | null): Pasted {
  const text = data?.getData('text/plain') ?? '';
  const files = [...(data?.files ?? [])];
  if (files.length > 0 && text === '') return { type: 'files', files };
  return text.length > LONG_TEXT ? { type: 'text', text } : { type: 'plain' };
}

/** The draft with a text put in where it would have been pasted. */
export function insert(draft: string, text: string, start: number, end: number): string {
  return draft.slice(0, start) + text + draft.slice(end);
}

/** What an export of conversations begins with: ours, ChatGPT's, Claude's. */
const EXPORTS = /"inglenook\.conversations"|"mapping"\s*:|"chat_messages"\s*:/;

/** Exports are read in; everything else goes with a message. */
export async function isExport(file: File): Promise<boolean> {
  if (/\.zip$/i.test(file.name)) return true;
  if (!/\.json$/i.test(file.name)) return false;
  return EXPORTS.test(await textOf(file.slice(0, 64 * 1024)));
}

function textOf(blob: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsText(blob);
  });
}

/** As `isExport`, where only a file's path is known. */
export const isExportPath = (path: string): boolean =>
  /(?:\.zip|[/\\](?:inglenook-)?conversations[^/\\]*\.json)$/i.test(path);

/** The file dialog shows these first; all others can be chosen too. */
export const ACCEPTED = '.txt,.md,.csv,.tsv,.pdf,.json,.html,.xml,.log,text/*,application/pdf';
