/** The open chat: a reload returns to it, and so does the next start if the settings say so. */

const KEY = 'inglenook.open';

/** `isKept`: also from before the last start. Null: a new chat. */
export const lastOpen = (isKept: boolean): string | null =>
  sessionStorage.getItem(KEY) ?? (isKept ? localStorage.getItem(KEY) : null);

/** Null: a new chat is open. */
export function rememberOpen(id: string | null): void {
  for (const storage of [sessionStorage, localStorage]) {
    if (id === null) storage.removeItem(KEY);
    else storage.setItem(KEY, id);
  }
}
