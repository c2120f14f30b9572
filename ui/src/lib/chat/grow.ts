/** A text area as high as its text; the style sheet sets where it stops. */
import type { Attachment } from 'svelte/attachments';

export function growWith(text: () => string): Attachment<HTMLTextAreaElement> {
  return (area) => {
    void text();
    area.style.height = 'auto';
    area.style.height = `${area.scrollHeight}px`;
  };
}
