/**
 * The composition root: makes the stores, hands each what the application says, and does what needs
 * more than one of them. The stores themselves know nothing of each other.
 */
import { asErrorInfo, type Backend } from '../backend/backend';
import type * as api from '../backend/bindings';
import type { ButtonAction } from '../shared/button-action';
import { Toasts } from '../shared/toasts.svelte';
import { isOver } from '../features/chat/reducer';
import { ChatState } from '../features/chat/store.svelte';
import { ConversationsState } from '../features/conversations/store.svelte';
import { ContextParts } from '../features/chat/context-usage.svelte';
import { DraftCountState } from '../features/chat/draft-tokens.svelte';
import { DownloadsState } from '../features/downloads/store.svelte';
import { EndpointsState } from '../features/endpoints/store.svelte';
import { FoldersState } from '../features/conversations/folders.svelte';
import { HubState } from '../features/models/hub.svelte';
import { InstrumentsState } from '../features/performance/store.svelte';
import { LookState } from '../features/tokens/store.svelte';
import { LibraryState } from '../features/models/library.svelte';
import { ModelsState } from '../features/models/store.svelte';
import { ProfileState } from '../features/performance/profile.svelte';
import { ScanState } from '../features/chat/draft-scan.svelte';
import { PresetsState } from '../features/options/presets.svelte';
import { PromptsState } from '../features/tools/prompts.svelte';
import { SearchState } from '../features/conversations/search.svelte';
import { LocalServer } from '../features/server/store.svelte';
import { SettingsState } from '../features/settings/store.svelte';
import { TEMPORARY } from '../features/chat/temporary-chat';
import { ToolsState } from '../features/tools/store.svelte';
import { TrashState } from '../features/trash/store.svelte';
import { show } from './deep-links';
import { Attached } from '../features/attachments/store.svelte';
import { Drafts } from '../features/chat/drafts.svelte';
import { Files } from './import-export';
import { follow } from './follow-events';
import * as keeping from './actions';
import * as many from './bulk-actions';
import { Queued } from './queue-sender';
import { Selection } from '../features/conversations/selection.svelte';
import { OwnOptions } from './conversation-options.svelte';
import { applySettings } from './apply-settings';
import { actionsOf, firstOf, stepsOf } from './error-actions';
import { Notifier } from './notifier';
import { Ui } from './ui-state.svelte';
import { t, toldInLine } from '../i18n';

const OPEN_KEY = 'inglenook.open';

export class Inglenook {
  readonly backend: Backend;
  readonly chat: ChatState;
  readonly conversations: ConversationsState;
  readonly contextParts: ContextParts;
  readonly draftCount: DraftCountState;
  readonly downloads: DownloadsState;
  readonly endpoints: EndpointsState;
  readonly folders: FoldersState;
  readonly hub: HubState;
  readonly instruments: InstrumentsState;
  readonly look: LookState;
  readonly library: LibraryState;
  readonly models: ModelsState;
  readonly scan: ScanState;
  readonly server: LocalServer;
  readonly presets: PresetsState;
  readonly prompts: PromptsState;
  readonly profile: ProfileState;
  readonly own: OwnOptions;
  readonly search: SearchState;
  /** As `search`, for the palette. */
  readonly finder: SearchState;
  readonly settings: SettingsState;
  readonly tools: ToolsState;
  readonly trash: TrashState;
  readonly files: Files;
  readonly attached: Attached;
  readonly queued: Queued;
  readonly drafts = new Drafts();
  readonly selection = new Selection();
  readonly toasts = new Toasts();
  readonly ui = new Ui();

  info = $state.raw<api.AppInfo | null>(null);
  /** The application could not be reached at all. */
  failure = $state.raw<api.ErrorInfo | null>(null);
  readonly #notifier = new Notifier(this);
  /** The model chosen for a chat that has no message yet. */
  #chosen = $state<string | null>(null);

  readonly model = $derived.by(() => {
    const summary = this.conversations.find(this.chat.id);
    const wanted = summary?.model ?? this.#chosen ?? this.settings.text('model', 'starter');
    return this.models.find(wanted) ?? (summary ? undefined : this.models.answering[0]);
  });

  constructor(backend: Backend) {
    this.backend = backend;
    this.chat = new ChatState(backend, {
      moved: (turn, nowMs) => this.instruments.see({ ...turn, isOver: isOver(turn) }, nowMs),
      ended: (place, turn) => {
        this.instruments.ended(turn.stats);
        this.profile.ended();
        this.queued.ended(place, turn);
      },
    });
    this.conversations = new ConversationsState(backend);
    this.contextParts = new ContextParts(backend);
    this.draftCount = new DraftCountState(backend);
    this.downloads = new DownloadsState(backend);
    this.endpoints = new EndpointsState(backend);
    this.folders = new FoldersState(backend);
    this.hub = new HubState(backend);
    this.instruments = new InstrumentsState(backend);
    this.look = new LookState(backend);
    this.library = new LibraryState(backend);
    this.models = new ModelsState(backend);
    this.scan = new ScanState(backend);
    this.server = new LocalServer(backend);
    this.presets = new PresetsState(backend);
    this.prompts = new PromptsState(backend);
    this.profile = new ProfileState(backend);
    this.own = new OwnOptions(backend, this.chat, this.presets);
    this.search = new SearchState(backend);
    this.finder = new SearchState(backend);
    this.settings = new SettingsState(backend);
    this.tools = new ToolsState(backend);
    this.trash = new TrashState(backend);
    this.queued = new Queued(this);
    this.attached = new Attached(backend);
    this.files = new Files(backend, this.toasts, (work) => this.attempt(work));
  }

  async start(): Promise<void> {
    const take = (event: api.AppEvent) => this.#apply(event);
    void follow(this.backend, take, () => this.#load());
    await this.#load();
    this.ui.welcome = this.#isFirstRun();
    const open = sessionStorage.getItem(OPEN_KEY);
    if (open && this.conversations.find(open)) await this.chat.open(open);
    const never = new AbortController().signal;
    const closing = () => (this.ui.closing = 'asked');
    void this.backend.watchClosing?.(closing, never).catch(() => undefined);
    // A window that nobody can ask for anything is a window still.
    await this.backend.watchAsked?.((asked) => show(this, asked), never).catch(() => undefined);
  }

  /** Only in the window: who is served a page by somebody has nothing to set up. */
  #isFirstRun(): boolean {
    const isNew = this.conversations.loaded && this.conversations.list.length === 0;
    return this.backend.kind === 'window' && isNew && this.settings.on('welcome');
  }

  newChat(): void {
    this.chat.startNew();
    this.queued.queue.forget(TEMPORARY);
    this.#chosen = null;
    this.own.forget();
    sessionStorage.removeItem(OPEN_KEY);
    this.ui.showChat();
  }

  /** A chat that is kept nowhere. */
  temporaryChat(): void {
    this.newChat();
    this.chat.startTemporary();
  }

  openConversation(id: string): void {
    this.ui.showChat();
    sessionStorage.setItem(OPEN_KEY, id);
    void this.chat.open(id);
  }

  async send(text: string, files: readonly api.Attachment[] = []): Promise<boolean> {
    const sent = await this.chat.send(text, this.model?.id ?? null, { ...this.own.fresh, files });
    // A chat that is kept nowhere has it here alone.
    if (sent && !this.chat.temporary) this.own.forget();
    if (sent && this.chat.id) sessionStorage.setItem(OPEN_KEY, this.chat.id);
    return sent;
  }

  openTrash(): void {
    this.ui.view = this.ui.view === 'trash' ? 'chat' : 'trash';
    void this.attempt(() => this.trash.load());
  }

  readonly deleteConversation = (id: string) => keeping.deleteConversation(this, id);
  readonly copy = (text: string) => keeping.copy(this, text);
  readonly print = (id: string) => keeping.print(this, id);
  readonly addFolder = (inside: string | null = null, parent: string | null = null) =>
    keeping.addFolder(this, inside, parent);
  readonly openMessage = (id: string, message: string) => keeping.openMessage(this, id, message);
  readonly branchOff = (message: string) => keeping.branchOff(this, message);
  readonly deleteMessage = (message: string) => keeping.deleteMessage(this, message);
  readonly rewrite = (message: string, text: string) => keeping.rewrite(this, message, text);
  readonly deleteAll = (ids: readonly string[]) => many.deleteAll(this, ids);
  readonly moveAll = (ids: readonly string[], to: string | null) => many.moveAll(this, ids, to);
  readonly pinAll = (ids: readonly string[]) => many.pinAll(this, ids);
  readonly removeModel = (model: api.ModelEntry) => keeping.removeModel(this, model);
  readonly nextPreset = () => keeping.nextPreset(this);
  readonly deletePreset = (preset: api.Preset) => keeping.deletePreset(this, preset);
  readonly resetSettings = (rows: readonly api.SettingRow[]) => keeping.resetSettings(this, rows);
  readonly duplicate = (id: string) => many.duplicate(this, id);

  rename(id: string, title: string): Promise<void> {
    return this.attempt(() => this.conversations.rename(id, title));
  }

  /** For the open conversation; in a new chat also for those to come. */
  async chooseModel(id: string): Promise<void> {
    const open = this.chat.id;
    if (open !== null) return this.attempt(() => this.conversations.setModel(open, id));
    this.#chosen = id;
    return this.settings.set('model', id);
  }

  undo(work: () => Promise<unknown>): ButtonAction {
    return { label: t('common.undo'), testid: 'toast-undo', run: () => void this.attempt(work) };
  }

  /** Buttons for what can be done about an error. */
  actionsFor({ code }: Pick<api.ErrorInfo, 'code'>): ButtonAction[] {
    return actionsOf(this, stepsOf(code));
  }

  /** Does what may fail and has no place of its own to say so. */
  async attempt(work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      this.#say(asErrorInfo(thrown));
    }
  }

  async #load(): Promise<void> {
    try {
      const [info] = await Promise.all([
        this.backend.call('app_info', {}),
        this.conversations.load(),
        this.folders.load(),
        this.models.load(),
        this.downloads.load(),
        this.presets.load(),
        this.settings.load(),
      ]);
      this.info = info;
      this.failure = null;
      applySettings(this);
      void this.attached.check();
      void this.instruments.weigh();
      void this.server.ask();
    } catch (thrown) {
      this.failure = asErrorInfo(thrown);
    }
  }

  #apply(event: api.AppEvent): void {
    const first = [this.conversations, this.chat, this.folders, this.trash, this.models];
    const then = [this.downloads, this.library, this.presets, this.settings, this.tools];
    const all = [...first, ...then, this.queued, this.instruments, this.#notifier];
    all.forEach((it) => it.apply(event));
    if (event.type === 'notice') this.#say(event.error);
    if (event.type === 'setting_changed') applySettings(this);
  }

  #say(error: api.ErrorInfo): void {
    this.toasts.show({ text: toldInLine(error), tone: 'bad', ...firstOf(this, error.code) });
  }
}
