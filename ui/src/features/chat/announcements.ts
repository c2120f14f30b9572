/** Splits a growing answer into announcements for screen readers: whole sentences without Markdown. Pure. */
import { t } from '../../i18n';

/** End of a sentence or line. */
const END = /[.!?…。！？](?=\s)|\n/g;

export interface Announcement {
  /** Empty if no sentence has ended. */
  readonly text: string;
  /** Offset up to which the answer has been announced. */
  readonly end: number;
}

/** Returns what to announce of the text after `from`. `over`: the answer is complete. */
export function nextAnnouncement(answer: string, from: number, over: boolean): Announcement {
  const rest = answer.slice(from);
  let length = over ? rest.length : 0;
  if (!over) for (const end of rest.matchAll(END)) length = end.index + 1;
  return { text: toPlainText(rest.slice(0, length)), end: from + length };
}

function toPlainText(markdown: string): string {
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
