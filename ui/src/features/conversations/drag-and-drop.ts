/** Drag and drop of conversations and folders in the sidebar. */

/** Own MIME types, so that text dragged from elsewhere is ignored. */
const CONVERSATIONS = 'application/x-inglenook-conversations';
const FOLDER = 'application/x-inglenook-folder';

/** The dragged folder. Valid targets depend on it, but browsers reveal drag data only on drop. */
let folder: string | null = null;

export function startDrag(event: DragEvent, ids: readonly string[]): void {
  put(event, CONVERSATIONS, JSON.stringify(ids));
}

export function startFolderDrag(event: DragEvent, id: string): void {
  put(event, FOLDER, id);
  folder = id;
}

/** Ends a drag, whether it was dropped or cancelled. */
export function endDrag(): void {
  folder = null;
}

function put(event: DragEvent, type: string, text: string): void {
  if (!event.dataTransfer) return;
  event.dataTransfer.setData(type, text);
  event.dataTransfer.effectAllowed = 'move';
}

const hasType = (event: DragEvent, type: string): boolean =>
  event.dataTransfer?.types.includes(type) ?? false;

export const hasConversations = (event: DragEvent): boolean => hasType(event, CONVERSATIONS);

export function draggedConversations(event: DragEvent): string[] {
  const text = event.dataTransfer?.getData(CONVERSATIONS) ?? '';
  return text === '' ? [] : (JSON.parse(text) as string[]);
}

export const draggedFolder = (event: DragEvent): string | null =>
  hasType(event, FOLDER) ? folder : null;
