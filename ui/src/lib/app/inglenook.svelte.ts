/**
 * The composition root: makes the stores, hands each what the application says, and does what needs
 * more than one of them. The stores themselves know nothing of each other.
 */
import { asErrorInfo, type Backend } from '../backend/backend';
import type { AppEvent, AppInfo, ErrorInfo } from '../backend/bindings';
import { Toasts } from '../shared/toasts.svelte';
import { ChatState } from '../state/chat.svelte';
import { ConversationsState } from '../state/conversations.svelte';
import { DraftCountState } from '../state/draft-count.svelte';
import { FoldersState } from '../state/folders.svelte';
import { ModelsState } from '../state/models.svelte';
import { SearchState } from '../state/search.svelte';
import { SettingsState } from '../state/settings.svelte';
import { TrashState } from '../state/trash.svelte';
import { Files } from './files';
import { Drafts } from './drafts.svelte';
import { applyTheme, storedTheme } from './theme';
import { Ui } from './ui.svelte';

const OPEN_KEY = 'inglenook.open';
const RECONNECT_MS = 3000;

export class Inglenook {
  readonly backend: Backend;
  readonly chat: ChatState;
  readonly conversations: ConversationsState;
  readonly draftCount: DraftCountState;
  readonly folders: FoldersState;
  readonly models: ModelsState;
  readonly search: SearchState;
  readonly settings: SettingsState;
  readonly trash: TrashState;
  readonly files: Files;
  readonly drafts = new Drafts();
  readonly toasts = new Toasts();
  readonly ui = new Ui();

  info = $state.raw<AppInfo | null>(null);
  /** The application could not be reached at all. */
  failure = $state.raw<ErrorInfo | null>(null);
  /** The model chosen for a chat that has no message yet. */
  #chosen = $state<string | null>(null);

  readonly model = $derived.by(() => {
    const summary = this.conversations.find(this.chat.id);
    const wanted = summary?.model ?? this.#chosen ?? this.settings.text('model', 'starter');
    return this.models.find(wanted) ?? (summary ? undefined : this.models.list[0]);
  });

  constructor(backend: Backend) {
    this.backend = backend;
    this.chat = new ChatState(backend);
    this.conversations = new ConversationsState(backend);
    this.draftCount = new DraftCountState(backend);
    this.folders = new FoldersState(backend);
    this.models = new ModelsState(backend);
    this.search = new SearchState(backend);
    this.settings = new SettingsState(backend);
    this.trash = new TrashState(backend);
    this.files = new Files(backend, this.toasts, (work) => this.attempt(work));
  }

  async start(): Promise<void> {
    void this.#watchApp();
    await this.#load();
    const open = sessionStorage.getItem(OPEN_KEY);
    if (open && this.conversations.find(open)) await this.chat.open(open);
  }

  newChat(): void {
    this.chat.startNew();
    this.#chosen = null;
    sessionStorage.removeItem(OPEN_KEY);
    this.ui.showChat();
  }

  openConversation(id: string): void {
    this.ui.showChat();
    sessionStorage.setItem(OPEN_KEY, id);
    void this.chat.open(id);
  }

  async send(text: string): Promise<boolean> {
    const sent = await this.chat.send(text, this.model?.id ?? null);
    if (sent && this.chat.id) sessionStorage.setItem(OPEN_KEY, this.chat.id);
    return sent;
  }

  /** At the message that was looked for, on whatever branch it is. */
  async openMessage(conversation: string, message: string): Promise<void> {
    this.openConversation(conversation);
    await this.attempt(async () => {
      await this.chat.open(conversation);
      if (!this.chat.messages.some((it) => it.id === message)) {
        await this.chat.choose(message, null);
      }
      this.ui.wanted = message;
    });
  }

  openTrash(): void {
    this.ui.view = this.ui.view === 'trash' ? 'chat' : 'trash';
    void this.attempt(() => this.trash.load());
  }

  /** A folder whose name is to be written; with a conversation in it, if one is named. */
  addFolder(conversation: string | null = null): Promise<void> {
    return this.attempt(async () => {
      const folder = await this.folders.add('New folder');
      if (conversation !== null) await this.conversations.move(conversation, folder.id);
      this.ui.renaming = folder.id;
    });
  }

  branchOff(message: string): Promise<void> {
    return this.attempt(async () => {
      const copy = await this.backend.call('message_fork', { message });
      this.openConversation(copy.id);
    });
  }

  deleteMessage(message: string): Promise<void> {
    return this.attempt(async () => {
      await this.chat.remove(message);
      const run = () => void this.attempt(() => this.chat.restore(message));
      const action = { label: 'Undo', testid: 'toast-undo', run };
      this.toasts.show({ text: 'Message and what followed it deleted', tone: 'plain', action });
    });
  }

  async deleteConversation(id: string): Promise<void> {
    const title = this.conversations.find(id)?.title ?? 'Chat';
    await this.attempt(async () => {
      await this.conversations.remove(id);
      if (this.chat.id === id) this.newChat();
      const run = () => void this.attempt(() => this.conversations.restore(id));
      const action = { label: 'Undo', testid: 'toast-undo', run };
      this.toasts.show({ text: `“${shorten(title)}” deleted`, tone: 'plain', action });
    });
  }

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
        this.settings.load(),
      ]);
      this.info = info;
      this.failure = null;
      applyTheme(this.settings.text('theme', storedTheme()));
    } catch (thrown) {
      this.failure = asErrorInfo(thrown);
    }
  }

  async #watchApp(): Promise<void> {
    const never = new AbortController().signal;
    for (let first = true; ; first = false) {
      // What happened while nobody listened is asked for anew.
      const onOpen = () => void (first ? undefined : this.#load());
      const take = (events: AppEvent[]) => events.forEach((event) => this.#apply(event));
      await this.backend.watchApp(take, onOpen, never).catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
    }
  }

  #apply(event: AppEvent): void {
    this.conversations.apply(event);
    this.chat.apply(event);
    this.folders.apply(event);
    this.trash.apply(event);
    this.models.apply(event);
    this.settings.apply(event);
    if (event.type === 'notice') this.#say(event.error);
    if (event.type === 'setting_changed' && event.row.key === 'theme') {
      applyTheme(String(event.row.value));
    }
  }

  #say(error: ErrorInfo): void {
    this.toasts.show({ text: `${error.message} ${error.remedy}`.trim(), tone: 'bad' });
  }
}

const shorten = (title: string): string => (title.length > 40 ? `${title.slice(0, 39)}…` : title);
