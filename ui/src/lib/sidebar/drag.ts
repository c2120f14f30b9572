/** Conversations on their way from one place of the sidebar to another. */

/** Our own kind, so that text from elsewhere that is dropped here is none. */
const TYPE = 'application/x-inglenook-conversations';

export function carry(event: DragEvent, ids: readonly string[]): void {
  if (!event.dataTransfer) return;
  event.dataTransfer.setData(TYPE, JSON.stringify(ids));
  event.dataTransfer.effectAllowed = 'move';
}

export const carries = (event: DragEvent): boolean =>
  event.dataTransfer?.types.includes(TYPE) ?? false;

export function carried(event: DragEvent): string[] {
  const text = event.dataTransfer?.getData(TYPE) ?? '';
  return text === '' ? [] : (JSON.parse(text) as string[]);
}
