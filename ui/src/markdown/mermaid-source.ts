/** Reads what all Mermaid sources share: front matter, directives, comments. */

export interface MermaidSource {
  /** Lines from the first statement on. */
  readonly lines: readonly string[];
  /** Title from the front matter. */
  readonly title: string;
}

const HEAD = /^\s*---[ \t]*\n([^]*?)\n---[ \t]*(?:\n|$)/;
const TITLE = /^title:\s*(?:"([^"]*)"|'([^']*)'|(.*?))\s*$/m;
const SETTINGS = /%%\{[^]*?\}%%/g;

export function readMermaid(source: string): MermaidSource {
  const head = HEAD.exec(source);
  const title = TITLE.exec(head?.[1] ?? '');
  const body = source.slice(head?.[0].length ?? 0).replace(SETTINGS, '');
  const lines = body.split('\n').map((line) => line.trim());
  return {
    lines: lines.filter((line) => line !== '' && !line.startsWith('%%')),
    title: title?.[1] ?? title?.[2] ?? title?.[3] ?? '',
  };
}

/** Accessibility texts and click handlers, which are not drawn. */
export const isSilent = (line: string): boolean =>
  /^(?:accTitle|accDescr)\s*:/.test(line) || /^click\s/.test(line);
