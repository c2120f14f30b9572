/**
 * The composition root: connects the stores, dispatches events to them, and hosts actions that need
 * several of them. Stores never know each other.
 */
import { asErrorInfo, type Backend } from '../backend/backend';
import type * as api from '../backend/bindings';
import type { ButtonAction } from '../shared/button-action';
import { codeActions } from '../shared/code-actions.svelte';
import { isOver } from '../features/chat/reducer';
import { ChatState } from '../features/chat/store.svelte';
import { TEMPORARY } from '../features/chat/temporary-chat';
import { openDeepLink } from './deep-links';
import { ImportExport } from './import-export';
import { followEvents } from './follow-events';
import * as actions from './actions';
import * as bulk from './bulk-actions';
import { QueueSender } from './queue-sender';
import { ChatOptionsState } from './chat-options.svelte';
import { applySettings } from './apply-settings';
import { toButtons, firstButton, suggestionsFor } from './error-actions';
import { lastOpen, rememberOpen } from './last-open';
import { Notifier } from './notifier';
import { Stores } from './stores';
import { t, localizeErrorInline } from '../i18n';

export class Inglenook extends Stores {
  readonly chat: ChatState;
  readonly chatOptions: ChatOptionsState;
  readonly importExport: ImportExport;
  readonly queueSender: QueueSender;

  info = $state.raw<api.AppInfo | null>(null);
  /** Set while the application cannot be reached. */
  failure = $state.raw<api.ErrorInfo | null>(null);
  readonly #notifier = new Notifier(this);
  /** Model chosen for a chat without messages. */
  #chosen = $state<string | null>(null);

  readonly model = $derived.by(() => {
    const summary = this.conversations.find(this.chat.id);
    const wanted = summary?.model ?? this.#chosen ?? this.settings.text('model', 'starter');
    return this.models.find(wanted) ?? (summary ? undefined : this.models.answering[0]);
  });

  constructor(backend: Backend) {
    super(backend);
    this.chat = new ChatState(backend, {
      turnAdvanced: (turn, nowMs) =>
        this.performance.observe({ ...turn, isOver: isOver(turn) }, nowMs),
      turnEnded: (place, turn) => {
        this.performance.turnEnded(turn.stats);
        this.profile.turnEnded();
        this.queueSender.turnEnded(place, turn);
      },
    });
    this.chatOptions = new ChatOptionsState(backend, this.chat, this.presets, this.settings);
    this.queueSender = new QueueSender(this);
    this.importExport = new ImportExport(backend, this.toasts, (work) => this.attempt(work));
    codeActions.save = (name, text) => void this.importExport.saveText(name, text);
  }

  async start(): Promise<void> {
    const take = (event: api.AppEvent) => this.#apply(event);
    void followEvents(this.backend, take, () => this.#load());
    await this.#load();
    this.ui.welcome = this.#isFirstRun();
    const open = lastOpen(this.settings.text('start_with', 'new') === 'last');
    if (open !== null && this.conversations.find(open)) await this.chat.open(open);
    const never = new AbortController().signal;
    const closing = () => (this.ui.closing = 'asked');
    void this.backend.watchClosing?.(closing, never).catch(() => undefined);
    // Without deep links the window still works.
    await this.backend
      .watchDeepLinks?.((link) => openDeepLink(this, link), never)
      .catch(() => undefined);
  }

  /** Only in the window: a served page needs no setup. */
  #isFirstRun(): boolean {
    const isNew = this.conversations.loaded && this.conversations.list.length === 0;
    return this.backend.kind === 'window' && isNew && this.settings.on('welcome');
  }

  /** Starts a chat, in a folder or outside of any. A project gives it what it begins with. */
  newChat(folder: string | null = null): void {
    this.chat.startNew();
    this.queueSender.queue.forget(TEMPORARY);
    this.#chosen = null;
    this.chatOptions.reset();
    rememberOpen(null);
    this.ui.showChat();
    void this.attempt(async () => this.#beginWith(await this.projects.start(folder)));
  }

  async #beginWith(project: api.Project | null): Promise<void> {
    if (project === null || this.chat.id !== null) return;
    this.#chosen = project.model;
    await this.chatOptions.save(project);
  }

  /** Starts a chat that is never stored. */
  temporaryChat(): void {
    this.newChat();
    this.chat.startTemporary();
  }

  openConversation(id: string): void {
    this.ui.showChat();
    void this.projects.start(null);
    rememberOpen(id);
    void this.chat.open(id);
  }

  async send(text: string, files: readonly api.Attachment[] = []): Promise<boolean> {
    const { folder, loading } = this.projects;
    const isNew = this.chat.id === null;
    // Until the project is known, the application fills in what it says.
    const own = isNew && loading ? {} : this.chatOptions.unsent;
    const model = isNew && loading ? null : (this.model?.id ?? null);
    const sent = await this.chat.send(text, model, { ...own, folder, files });
    // A temporary chat keeps its options only here.
    if (sent && !this.chat.temporary) this.chatOptions.reset();
    if (sent && isNew) await this.projects.start(null);
    if (sent && this.chat.id) rememberOpen(this.chat.id);
    return sent;
  }

  openTrash(): void {
    this.ui.view = this.ui.view === 'trash' ? 'chat' : 'trash';
    void this.attempt(() => this.trash.load());
  }

  readonly deleteConversation = (id: string) => actions.deleteConversation(this, id);
  readonly copy = (text: string) => actions.copy(this, text);
  readonly print = (id: string) => actions.print(this, id);
  readonly addFolder = (inside: string | null = null, parent: string | null = null) =>
    actions.addFolder(this, inside, parent);
  readonly openMessage = (id: string, message: string) => actions.openMessage(this, id, message);
  readonly branchOff = (message: string) => actions.branchOff(this, message);
  readonly deleteMessage = (message: string) => actions.deleteMessage(this, message);
  readonly rewrite = (message: string, text: string) => actions.rewrite(this, message, text);
  readonly deleteAll = (ids: readonly string[]) => bulk.deleteAll(this, ids);
  readonly moveAll = (ids: readonly string[], to: string | null) => bulk.moveAll(this, ids, to);
  readonly pinAll = (ids: readonly string[]) => bulk.pinAll(this, ids);
  readonly removeModel = (model: api.ModelEntry) => actions.removeModel(this, model);
  readonly nextPreset = () => actions.nextPreset(this);
  readonly deletePreset = (preset: api.Preset) => actions.deletePreset(this, preset);
  readonly resetSettings = (rows: readonly api.SettingRow[]) => actions.resetSettings(this, rows);
  readonly duplicate = (id: string) => bulk.duplicate(this, id);

  rename(id: string, title: string): Promise<void> {
    return this.attempt(() => this.conversations.rename(id, title));
  }

  /** Sets the model of the open conversation, or of this and later new chats. */
  async chooseModel(id: string): Promise<void> {
    const open = this.chat.id;
    if (open !== null) return this.attempt(() => this.conversations.setModel(open, id));
    this.#chosen = id;
    return this.settings.set('model', id);
  }

  undo(work: () => Promise<unknown>): ButtonAction {
    return { label: t('common.undo'), testid: 'toast-undo', run: () => void this.attempt(work) };
  }

  /** Returns buttons for what can be done about an error. */
  actionsFor({ code }: Pick<api.ErrorInfo, 'code'>): ButtonAction[] {
    return toButtons(this, suggestionsFor(code));
  }

  /** Asks again for what other programs on this data folder may have changed: models that `nook` added, servers. */
  lookAgain(): void {
    void this.server.refresh();
    void this.models.load().catch(() => undefined);
  }

  /** Runs work whose failure is reported as a toast. */
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
      void this.attachments.verify();
      void this.performance.refreshMemory();
      void this.server.refresh();
      void this.toolForms.load().catch(() => undefined);
    } catch (thrown) {
      this.failure = asErrorInfo(thrown);
    }
  }

  #apply(event: api.AppEvent): void {
    const first = [this.conversations, this.chat, this.folders, this.trash, this.models];
    const then = [
      this.downloads,
      this.library,
      this.memory,
      this.presets,
      this.settings,
      this.toolForms,
      this.tools,
      this.tunes,
      this.updates,
    ];
    const all = [...first, ...then, this.queueSender, this.performance, this.#notifier];
    all.forEach((it) => it.apply(event));
    if (event.type === 'notice') this.#say(event.error);
    if (event.type === 'setting_changed') applySettings(this);
    if (event.type === 'update_changed') actions.tellOfUpdate(this);
  }

  #say(error: api.ErrorInfo): void {
    this.toasts.show({
      text: localizeErrorInline(error),
      tone: 'bad',
      ...firstButton(this, error.code),
    });
  }
}
