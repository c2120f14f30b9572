/** What is on screen, as opposed to what is true: the view, the sidebar, what is open over it. */

const SIDEBAR_KEY = 'inglenook.sidebar';
const WIDTH_KEY = 'inglenook.sidebar.width';
/** How wide the sidebar may be made, and how wide it comes: titles can be read, and the chat too. */
export const SIDEBAR_PX = { least: 200, usual: 260, most: 480 } as const;
/** Below this the sidebar lies over the chat instead of beside it. */
export const NARROW_PX = 760;

export type ModelsTab = 'here' | 'discover' | 'servers';
export type View = 'chat' | 'models' | 'settings' | 'trash';

const within = (px: number): number =>
  Number.isFinite(px)
    ? Math.round(Math.min(SIDEBAR_PX.most, Math.max(SIDEBAR_PX.least, px)))
    : SIDEBAR_PX.usual;

export class Ui {
  view = $state<View>('chat');
  sidebar = $state(localStorage.getItem(SIDEBAR_KEY) !== 'closed' && innerWidth > NARROW_PX);
  sidebarPx = $state(within(Number(localStorage.getItem(WIDTH_KEY) ?? SIDEBAR_PX.usual)));
  /** Its edge is being dragged. */
  sizing = $state(false);
  shortcuts = $state(false);
  palette = $state(false);
  /** The first steps. */
  welcome = $state(false);
  /** The section of the settings that is looked at, and the row that was looked for. */
  section = $state<string | null>(null);
  setting = $state<string | null>(null);
  /** What of the models is looked at. */
  models = $state<ModelsTab>('here');
  /** Model files that were dropped on the window. */
  importing = $state.raw<readonly string[]>([]);
  picker = $state(false);
  /** The conversation whose title is being edited. */
  renaming = $state<string | null>(null);
  /** The message of the user's that is being written anew. */
  editing = $state<string | null>(null);
  /** Counts up whenever the search field shall have the focus. */
  searchWanted = $state(0);
  /** The open conversation's own system prompt and sampling are being looked at. */
  options = $state(false);
  /** Words are looked for in the open chat. */
  finding = $state(false);
  /** Counts up whenever the field for those words shall have the focus. */
  findWanted = $state(0);
  /** The open chat is being drawn as a whole, to be printed. */
  printing = $state(false);
  /** The message that shall be scrolled to once it is there. */
  wanted = $state<string | null>(null);
  /** The window is to be closed while an answer is being written: the user is asked, or it waits for the answer. */
  closing = $state<'asked' | 'waiting' | null>(null);
  /** The address the user wants to follow. */
  link = $state<string | null>(null);
  /** Counts up whenever the message box shall have the focus. */
  composerWanted = $state(0);

  toggleSidebar(): void {
    this.sidebar = !this.sidebar;
    localStorage.setItem(SIDEBAR_KEY, this.sidebar ? 'open' : 'closed');
  }

  /** As wide as that, where it may be. */
  widen(px: number): void {
    this.sidebarPx = within(px);
    localStorage.setItem(WIDTH_KEY, String(this.sidebarPx));
  }

  showChat(): void {
    this.view = 'chat';
    if (innerWidth <= NARROW_PX) this.sidebar = false;
    this.focusComposer();
  }

  toggle(view: Exclude<View, 'chat'>): void {
    this.setting = null;
    if (this.view === view) this.showChat();
    else this.view = view;
  }

  showModels(tab: ModelsTab): void {
    this.models = tab;
    this.view = 'models';
  }

  showSetting(section: string, key: string | null): void {
    this.section = section;
    this.setting = key;
    this.view = 'settings';
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

  find(): void {
    this.finding = true;
    this.findWanted++;
  }

  focusComposer(): void {
    this.composerWanted++;
  }
}
