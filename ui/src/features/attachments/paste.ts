/** Classifies pasted and dropped content: files, long text, or plain text. */

/** Longer text becomes an attachment. */
export const MAX_INLINE_CHARS = 2500;

export type PasteKind =
  | { readonly type: 'files'; readonly files: readonly File[] }
  | { readonly type: 'text'; readonly text: string }
  /** Nothing that a page may see: copied files or a picture, if the web view keeps those to itself. */
  | { readonly type: 'withheld' }
  | { readonly type: 'plain' };

/** Office programs add a picture of the text; then the text counts. */
export function classifyPaste(data: DataTransfer | null): PasteKind {
  const text = data?.getData('text/plain') ?? '';
  const files = [...(data?.files ?? [])];
  if (text === '') return files.length > 0 ? { type: 'files', files } : { type: 'withheld' };
  return text.length > MAX_INLINE_CHARS ? { type: 'text', text } : { type: 'plain' };
}

/** Inserts text into a draft in place of the selection. */
export function insertText(draft: string, text: string, start: number, end: number): string {
  return draft.slice(0, start) + text + draft.slice(end);
}

/** Signatures of conversation exports: ours, ChatGPT's, Claude's. */
const EXPORTS = /"inglenook\.conversations"|"mapping"\s*:|"chat_messages"\s*:/;

/** Whether a file is an export of conversations. Other files become attachments. */
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

/** As `isExport`, judged by the path alone. */
export const isExportPath = (path: string): boolean =>
  /(?:\.zip|[/\\](?:inglenook-)?conversations[^/\\]*\.json)$/i.test(path);

/** Types that the file dialog shows first; others can be chosen too. */
export const ACCEPTED =
  'image/png,image/jpeg,image/webp,image/gif,image/bmp,image/tiff,.txt,.md,.csv,.tsv,.pdf,.docx,.odt,.xlsx,.ods,.pptx,.odp,.epub,.html,.htm,.json,.xml,.log,text/*,application/pdf';
