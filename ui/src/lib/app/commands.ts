/** What each shortcut does. */
import { commandFor, isMac, isTyping, type CommandId } from '../shared/keys';
import type { Inglenook } from './inglenook.svelte';

/** Runs the command of a key press; true: it was one, and the press is used up. */
export function onKey(app: Inglenook, event: KeyboardEvent): boolean {
  if (event.isComposing || event.defaultPrevented) return false;
  const command = commandFor(event, isMac());
  if (command) return run(app, command, event.target);
  if (isTyping(event) && mayTakeFocus(app, event.target)) app.ui.focusComposer();
  return false;
}

function run(app: Inglenook, command: CommandId, target: EventTarget | null): boolean {
  const { chat, ui } = app;
  if (overlaid() && command !== 'shortcuts') return false;
  switch (command) {
    case 'new-chat':
      app.newChat();
      return true;
    case 'toggle-sidebar':
      ui.toggleSidebar();
      return true;
    case 'settings':
      ui.toggleSettings();
      return true;
    case 'shortcuts':
      ui.shortcuts = !ui.shortcuts;
      return true;
    case 'focus-composer':
      ui.showChat();
      return true;
    case 'model-picker':
      ui.showChat();
      ui.picker = true;
      return true;
    case 'search':
      ui.focusSearch();
      return true;
    case 'regenerate': {
      const last = chat.shown.at(-1);
      if (ui.view === 'chat' && last?.role === 'assistant') void chat.regenerate(last.id);
      // Always used up: in a window it would load the page anew.
      return true;
    }
    case 'edit-last': {
      const last = chat.shown.findLast((it) => it.role === 'user');
      const box = target instanceof HTMLTextAreaElement && target.dataset.testid === 'composer';
      if (!box || target.value !== '' || !last || chat.answering) return false;
      ui.editing = last.id;
      return true;
    }
    case 'options':
      if (chat.id === null) return false;
      ui.options = !ui.options;
      return true;
    case 'rename':
      if (chat.id === null) return false;
      ui.sidebar = true;
      ui.renaming = chat.id;
      return true;
    case 'delete':
      if (chat.id === null) return false;
      void app.deleteConversation(chat.id);
      return true;
    case 'stop':
      if (ui.view !== 'chat') {
        ui.showChat();
        return true;
      }
      if (!chat.answering) return false;
      void chat.stop();
      return true;
  }
}

/** Something lies over the page and has the keys. */
const overlaid = (): boolean =>
  document.querySelector('dialog[open], [popover]:popover-open') !== null;

function mayTakeFocus(app: Inglenook, target: EventTarget | null): boolean {
  if (app.ui.view !== 'chat' || overlaid()) return false;
  if (!(target instanceof HTMLElement)) return true;
  return !target.isContentEditable && !['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName);
}
