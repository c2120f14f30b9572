/** Grows a text area with its text, up to the style sheet's maximum. */
import type { Attachment } from 'svelte/attachments';

export function autoGrow(text: () => string): Attachment<HTMLTextAreaElement> {
  return (area) => {
    const empty = text() === '';
    area.style.height = 'auto';
    // An empty one keeps the style sheet's height, which may not be applied yet.
    if (!empty) area.style.height = `${area.scrollHeight}px`;
  };
}
