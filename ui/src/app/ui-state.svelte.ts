/** State of the interface only: current view, sidebar, open dialogs, focus requests. */

const SIDEBAR_KEY = 'inglenook.sidebar';
const WIDTH_KEY = 'inglenook.sidebar.width';
const LEVEL_KEY = 'inglenook.settings.level';
/** Limits and default of the sidebar's width: both titles and chat stay readable. */
export const SIDEBAR_PX = { min: 200, default: 260, max: 480 } as const;
/** Below this window width the sidebar covers the chat instead of standing beside it. */
export const NARROW_PX = 760;

export type ModelsTab = 'here' | 'discover' | 'servers' | 'tune';
export type View = 'chat' | 'models' | 'settings' | 'trash' | 'memory' | 'help';

const clampWidth = (px: number): number =>
  Number.isFinite(px)
    ? Math.round(Math.min(SIDEBAR_PX.max, Math.max(SIDEBAR_PX.min, px)))
    : SIDEBAR_PX.default;

export class UiState {
  #isNarrow = innerWidth <= NARROW_PX;
  view = $state<View>('chat');
  sidebar = $state(localStorage.getItem(SIDEBAR_KEY) !== 'closed' && innerWidth > NARROW_PX);
  sidebarPx = $state(clampWidth(Number(localStorage.getItem(WIDTH_KEY) ?? SIDEBAR_PX.default)));
  /** Its edge is being dragged. Transitions are off meanwhile. */
  isResizingSidebar = $state(false);
  shortcuts = $state(false);
  palette = $state(false);
  /** The welcome dialog is open. */
  welcome = $state(false);
  /** Open section of the settings, and the row to scroll to. */
  section = $state<string | null>(null);
  setting = $state<string | null>(null);
  /** Settings that the page shows; `features/settings/levels.ts` says which are basic. */
  settingsLevel = $state<'basic' | 'advanced'>(
    localStorage.getItem(LEVEL_KEY) === 'advanced' ? 'advanced' : 'basic',
  );
  /** Open tab of the models view. */
  modelsTab = $state<ModelsTab>('here');
  /** Model files that were dropped on the window and wait for the import dialog. */
  pendingImports = $state.raw<readonly string[]>([]);
  picker = $state(false);
  /** Model whose details are open over the chat. */
  modelDetails = $state<string | null>(null);
  /** Conversation or folder whose name is being edited. */
  renaming = $state<string | null>(null);
  /** Message that is being edited. */
  editing = $state<string | null>(null);
  /** Incremented to move the focus to the search field. */
  searchFocusRequests = $state(0);
  /** The panel with the chat's options is open. */
  options = $state(false);
  /** The find bar is open. */
  isFinding = $state(false);
  /** Incremented to move the focus to the find field. */
  findFocusRequests = $state(0);
  /** The whole chat is being rendered for printing. */
  printing = $state(false);
  /** Message to scroll to as soon as it is loaded. */
  scrollTarget = $state<string | null>(null);
  /** The window is closing during an answer: the user is being asked, or chose to wait for the end. */
  closing = $state<'asked' | 'waiting' | null>(null);
  /** Address that the user wants to open. */
  link = $state<string | null>(null);
  /** Incremented to move the focus to the message box. */
  composerFocusRequests = $state(0);

  toggleSidebar(): void {
    this.sidebar = !this.sidebar;
    // Over the chat it is open for a moment: that says nothing about a wide window.
    if (!this.#isNarrow) localStorage.setItem(SIDEBAR_KEY, this.sidebar ? 'open' : 'closed');
  }

  /** The window became narrower or wider: the sidebar makes room for the chat, and comes back. */
  fitTo(widthPx: number): void {
    const isNarrow = widthPx <= NARROW_PX;
    if (isNarrow === this.#isNarrow) return;
    this.#isNarrow = isNarrow;
    this.sidebar = !isNarrow && localStorage.getItem(SIDEBAR_KEY) !== 'closed';
  }

  /** Sets the width, clamped to the limits. */
  setSidebarWidth(px: number): void {
    this.sidebarPx = clampWidth(px);
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

  setSettingsLevel(level: 'basic' | 'advanced'): void {
    this.settingsLevel = level;
    localStorage.setItem(LEVEL_KEY, level);
  }

  showModels(tab: ModelsTab): void {
    this.modelsTab = tab;
    this.view = 'models';
  }

  showSetting(section: string, key: string | null): void {
    this.section = section;
    this.setting = key;
    this.view = 'settings';
  }

  /** Ends editing and returns the focus to the message box. */
  endEditing(): void {
    this.editing = null;
    this.focusComposer();
  }

  focusSearch(): void {
    this.sidebar = true;
    this.searchFocusRequests++;
  }

  find(): void {
    this.isFinding = true;
    this.findFocusRequests++;
  }

  focusComposer(): void {
    this.composerFocusRequests++;
  }
}
