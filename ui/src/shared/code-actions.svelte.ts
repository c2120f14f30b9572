/** What code blocks ask of the application. Set by it, called by what renders Markdown. */

/** Code that can be shown as what it describes. */
export interface PreviewSource {
  readonly kind: 'html' | 'svg';
  readonly text: string;
}

class CodeActions {
  /** The code that is shown in the preview; null: it is closed. */
  preview = $state.raw<PreviewSource | null>(null);
  /** Saves code as a file. */
  save: (name: string, text: string) => void = () => undefined;
}

export const codeActions = new CodeActions();

const HTML = /^(?:html?|xhtml)$/i;
const WHOLE_SVG =
  /^\s*(?:<\?xml[^>]*>\s*)?(?:<!doctype svg[^>]*>\s*)?(?:<!--[^]*?-->\s*)*<svg[\s>]/i;

/** Whether a block can be previewed, and as what. */
export function previewKind(language: string, text: string): PreviewSource['kind'] | null {
  if (HTML.test(language)) return 'html';
  if (/^(?:svg|xml)$/i.test(language) && WHOLE_SVG.test(text)) return 'svg';
  return null;
}

/** Endings of files by the names of languages that differ from them. */
const ENDINGS: Readonly<Record<string, string>> = {
  bash: 'sh',
  'c#': 'cs',
  'c++': 'cpp',
  csharp: 'cs',
  golang: 'go',
  haskell: 'hs',
  javascript: 'js',
  julia: 'jl',
  kotlin: 'kt',
  latex: 'tex',
  markdown: 'md',
  mermaid: 'mmd',
  perl: 'pl',
  powershell: 'ps1',
  python: 'py',
  ruby: 'rb',
  rust: 'rs',
  shell: 'sh',
  text: 'txt',
  typescript: 'ts',
  yaml: 'yml',
  zsh: 'sh',
};

/** A name for the file of a block. */
export function codeFileName(language: string): string {
  const name = language.toLowerCase();
  const ending = ENDINGS[name] ?? (/^[a-z0-9]{1,10}$/.test(name) ? name : 'txt');
  return `code.${ending}`;
}
