/** Conversations and folders on their way from one place of the sidebar to another. */

/** Our own kinds, so that text from elsewhere that is dropped here is none. */
const CONVERSATIONS = 'application/x-inglenook-conversations';
const FOLDER = 'application/x-inglenook-folder';

/** Known before it is dropped: a folder can't go everywhere, and what is carried is told only on arrival. */
let folder: string | null = null;

export function carry(event: DragEvent, ids: readonly string[]): void {
  put(event, CONVERSATIONS, JSON.stringify(ids));
}

export function carryFolder(event: DragEvent, id: string): void {
  put(event, FOLDER, id);
  folder = id;
}

/** However it ended. */
export function arrived(): void {
  folder = null;
}

function put(event: DragEvent, type: string, text: string): void {
  if (!event.dataTransfer) return;
  event.dataTransfer.setData(type, text);
  event.dataTransfer.effectAllowed = 'move';
}

const has = (event: DragEvent, type: string): boolean =>
  event.dataTransfer?.types.includes(type) ?? false;

export const carries = (event: DragEvent): boolean => has(event, CONVERSATIONS);

export function carried(event: DragEvent): string[] {
  const text = event.dataTransfer?.getData(CONVERSATIONS) ?? '';
  return text === '' ? [] : (JSON.parse(text) as string[]);
}

export const carriedFolder = (event: DragEvent): string | null =>
  has(event, FOLDER) ? folder : null;
