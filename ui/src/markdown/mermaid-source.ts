/** What all of Mermaid's texts have around what they say: settings, comments, a title before the first line. */

export interface Source {
  /** The first line that says something, and those after it. */
  readonly lines: readonly string[];
  /** As the head has it. */
  readonly title: string;
}

const HEAD = /^\s*---[ \t]*\n([^]*?)\n---[ \t]*(?:\n|$)/;
const TITLE = /^title:\s*(?:"([^"]*)"|'([^']*)'|(.*?))\s*$/m;
const SETTINGS = /%%\{[^]*?\}%%/g;

export function read(source: string): Source {
  const head = HEAD.exec(source);
  const title = TITLE.exec(head?.[1] ?? '');
  const body = source.slice(head?.[0].length ?? 0).replace(SETTINGS, '');
  const lines = body.split('\n').map((line) => line.trim());
  return {
    lines: lines.filter((line) => line !== '' && !line.startsWith('%%')),
    title: title?.[1] ?? title?.[2] ?? title?.[3] ?? '',
  };
}

/** What is told to those who don't see it, or does something: nothing of it is drawn. */
export const isSilent = (line: string): boolean =>
  /^(?:accTitle|accDescr)\s*:/.test(line) || /^click\s/.test(line);
