/** Arrow keys move the focus between the rows of the sidebar: each row is one stop of Tab. */
import { isComposing } from '../../shared/composition';

const ROWS = '[data-testid="conversation-row"] > button.open';

/** Moves the focus to another row. Returns true if the key was used. */
export function moveFocus(event: KeyboardEvent): boolean {
  if (isComposing(event) || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey)
    return false;
  const rows = [...document.querySelectorAll<HTMLElement>(ROWS)];
  const at = rows.indexOf(event.currentTarget as HTMLElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
  if (to === undefined || at < 0) return false;
  event.preventDefault();
  event.stopPropagation();
  rows[Math.min(rows.length - 1, Math.max(0, to))]?.focus();
  return true;
}

/** The row that lies `step` rows after `id`; without such a row, the first or last. Null: there is none. */
export function rowBeside(ids: readonly string[], id: string | null, step: 1 | -1): string | null {
  const at = id === null ? -1 : ids.indexOf(id);
  if (at < 0) return (step > 0 ? ids[0] : ids.at(-1)) ?? null;
  return ids[at + step] ?? null;
}
