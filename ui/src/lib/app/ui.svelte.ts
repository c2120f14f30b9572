/** What is on screen, as opposed to what is true: the view, the sidebar, what is open over it. */

const SIDEBAR_KEY = 'inglenook.sidebar';
/** Below this the sidebar lies over the chat instead of beside it. */
export const NARROW_PX = 760;

export class Ui {
  view = $state<'chat' | 'settings' | 'trash'>('chat');
  sidebar = $state(localStorage.getItem(SIDEBAR_KEY) !== 'closed' && innerWidth > NARROW_PX);
  shortcuts = $state(false);
  picker = $state(false);
  /** The conversation whose title is being edited. */
  renaming = $state<string | null>(null);
  /** The message of the user's that is being written anew. */
  editing = $state<string | null>(null);
  /** Counts up whenever the search field shall have the focus. */
  searchWanted = $state(0);
  /** The open conversation's own system prompt and sampling are being looked at. */
  options = $state(false);
  /** The message that shall be scrolled to once it is there. */
  wanted = $state<string | null>(null);
  /** The address the user wants to follow. */
  link = $state<string | null>(null);
  /** Counts up whenever the message box shall have the focus. */
  composerWanted = $state(0);

  toggleSidebar(): void {
    this.sidebar = !this.sidebar;
    localStorage.setItem(SIDEBAR_KEY, this.sidebar ? 'open' : 'closed');
  }

  showChat(): void {
    this.view = 'chat';
    if (innerWidth <= NARROW_PX) this.sidebar = false;
    this.focusComposer();
  }

  toggleSettings(): void {
    if (this.view === 'settings') this.showChat();
    else this.view = 'settings';
  }

  /** Writing a message anew is over; the keys go back to the message box. */
  edited(): void {
    this.editing = null;
    this.focusComposer();
  }

  focusSearch(): void {
    this.sidebar = true;
    this.searchWanted++;
  }

  focusComposer(): void {
    this.composerWanted++;
  }
}
