/** What of a growing answer is read out: whole sentences, without the marks of Markdown. Pure. */
import { t } from '../../i18n';

/** A sentence, a line. */
const END = /[.!?…。！？](?=\s)|\n/g;

export interface Spoken {
  /** '' where no sentence has ended. */
  readonly text: string;
  /** Up to here the answer has been read out. */
  readonly upto: number;
}

/** What has come since `from`; `over`: nothing more will. */
export function spoken(answer: string, from: number, over: boolean): Spoken {
  const rest = answer.slice(from);
  let length = over ? rest.length : 0;
  if (!over) for (const end of rest.matchAll(END)) length = end.index + 1;
  return { text: plain(rest.slice(0, length)), upto: from + length };
}

function plain(markdown: string): string {
  return markdown
    .replace(/^ {0,3}(?:`{3,}|~{3,})(\w*).*$/gm, (_, language: string) =>
      language === '' ? '' : t('chat.code_in', { language }),
    )
    .replace(/^[ \t]*\|?[ \t:|-]+\|[ \t:|-]*$/gm, '')
    .replace(/^[ \t]*\||\|[ \t]*$/gm, '')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/^\s{0,3}(?:#{1,6}|>|[-*+])\s+/gm, '')
    .replace(/\*\*|__|~~|`/g, '')
    .replace(/[ \t]*\|[ \t]*/g, ', ')
    .replace(/\s+/g, ' ')
    .trim();
}
