/** A text area as high as its text; the style sheet sets where it stops. */
import type { Attachment } from 'svelte/attachments';

export function growWith(text: () => string): Attachment<HTMLTextAreaElement> {
  return (area) => {
    const empty = text() === '';
    area.style.height = 'auto';
    // An empty one is as high as its style sheet says, which may not have been applied yet.
    if (!empty) area.style.height = `${area.scrollHeight}px`;
  };
}
