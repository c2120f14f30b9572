/**
 * The open conversation: its messages and the turn that is answering. The turn belongs to the application:
 * leaving only stops watching it, and returning replays what was missed.
 */
import { asErrorInfo, type Backend } from '../../backend/backend';
import type * as api from '../../backend/bindings';
import { findCall, stopTurn, ToolCallUpdates } from './tool-calls';
import { sendMessage, type SendExtras } from './send-message';
import { isOver, newTurn, type LiveTurn } from './reducer';
import * as temporary from './temporary-chat';
import { withLive } from './turn-overlay';
import { watchedTurnOf, watchToEnd, type ChatHooks } from './watch-turn';

type CompactionCall = 'conversation_compact' | 'conversation_undo_compaction';

export class ChatState {
  /** Null for a chat without messages. */
  id = $state<string | null>(null);
  messages = $state.raw<readonly api.Message[]>([]);
  /** Options of the conversation: system prompt, sampling. Null while it loads. */
  options = $state.raw<api.ConversationOptions | null>(null);
  /** Strategy once the chat exceeds the context; null: the setting's. */
  compression = $state.raw<api.CompactionStrategy | null>(null);
  live = $state.raw<LiveTurn | null>(null);
  /** A temporary chat: its messages exist only in this page. */
  temporary = $state(false);
  opening = $state(false);
  sending = $state(false);
  /** Opening or sending failed. A failed turn carries its error in its message. */
  error = $state.raw<api.ErrorInfo | null>(null);
  /** The stream broke and is being reconnected. */
  reconnecting = $state(false);

  /** Older messages are being compacted on the user's request. */
  compacting = $state(false);
  #compaction = $state.raw<api.CompactionInfo | null>(null);

  /** Summary that replaces older messages for the model; null: none. */
  readonly compaction = $derived(this.live?.compaction ?? this.#compaction);
  readonly shown = $derived(withLive(this.messages, this.live));
  readonly #isWriting = $derived(this.live !== null && !isOver(this.live));
  /** First tool call that waits for approval. */
  readonly awaitingApproval = $derived(findCall(this.shown, 'asking'));
  readonly answering = $derived(this.#isWriting || findCall(this.shown, 'running') !== null);
  /** Key for drafts and queues in this window; null for a chat without messages. */
  readonly key = $derived(this.temporary ? temporary.TEMPORARY : this.id);

  readonly #backend: Backend;
  readonly #hooks: ChatHooks;
  #watch = new AbortController();
  /** The turn that `#follow` runs for. Each turn is followed once. */
  #followedTurn: string | null = null;
  #revision = 0;
  readonly #callUpdates = new ToolCallUpdates();
  #temporaryOptions: api.ConversationOptions | null = null;

  constructor(backend: Backend, hooks: ChatHooks = {}) {
    this.#backend = backend;
    this.#hooks = hooks;
  }

  startNew(): void {
    if (this.temporary) void temporary.stopPendingCalls(this.#backend, this.shown);
    this.#stopWatching();
    this.id = null;
    this.temporary = false;
    this.messages = [];
    this.setOptions(null, null);
    this.#compaction = null;
    this.opening = false;
    this.error = null;
    this.#callUpdates.clear();
  }

  startTemporary(): void {
    this.startNew();
    this.temporary = true;
  }

  async open(id: string): Promise<void> {
    if (this.id === id && !this.error) return;
    this.startNew();
    this.id = id;
    this.opening = true;
    await this.#refetch(this.#watch.signal);
    this.opening = false;
    // Only warms the cache: sending sooner or without it gives the same answer.
    if (!this.error) this.#backend.call('conversation_prefetch', { id }).catch(() => undefined);
  }

  /** Sets the options after they were stored. */
  setOptions(options: ChatState['options'], compression: ChatState['compression']): void {
    this.options = options;
    this.compression = compression;
  }

  /** Sends a message. Returns false if it was refused: the draft must be kept. */
  async send(text: string, model: string | null, extra: SendExtras = {}): Promise<boolean> {
    const { files = [], options = null } = extra;
    this.#temporaryOptions = options;
    if (this.temporary) return this.#ask({ before: this.shown, question: text, files }, model);
    return this.#startTurn(() => sendMessage(this.#backend, this.id, { text, model, ...extra }));
  }

  /** Creates a new version of a user message and answers it. */
  edit(message: string, text: string): Promise<boolean> {
    const asked = this.temporary ? temporary.questionAt(this.shown, message) : null;
    if (asked) return this.#ask({ ...asked, question: text }, null);
    return this.#startTurn(() => this.#backend.call('message_edit', { message, text }));
  }

  /** Writes a new version of an answer, optionally with another model or one-off options. */
  regenerate(message: string, model: string | null = null, once?: api.OneOffOptions) {
    const again = this.temporary ? temporary.questionAt(this.shown, message) : null;
    if (again) return this.#ask(again, model);
    return this.#startTurn(() =>
      this.#backend.call('message_regenerate', { message, model, ...(once && { once }) }),
    );
  }

  /** Writes a new version of an answer that takes another token at `index` and continues from there. */
  readonly pickToken = (message: string, index: number, token: number): Promise<boolean> =>
    this.#startTurn(() => this.#backend.call('message_pick', { message, index, token }));

  /** Continues an answer that was cut off. */
  readonly continueAnswer = (message: string): Promise<boolean> =>
    this.#startTurn(() => this.#backend.call('message_continue', { message }));

  /** Switches to the branch through a message, or through one of its versions. */
  readonly chooseBranch = (message: string, version: number | null): Promise<void> =>
    this.refetchAfter(this.#backend.call('message_choose', { message, version }));

  /** Deletes a message and all after it. */
  readonly remove = (message: string): Promise<void> =>
    this.refetchAfter(this.#backend.call('message_delete', { message }));

  readonly restore = (message: string): Promise<void> =>
    this.refetchAfter(this.#backend.call('message_restore', { message }));

  /** Waits for a change of the open conversation, then refetches it. */
  readonly refetchAfter = (work: Promise<unknown>): Promise<void> =>
    work.then(() => this.#refetch(this.#watch.signal));

  /** Compacts older messages now. */
  readonly compact = (): Promise<void> => this.#setCompaction('conversation_compact');

  /** Removes the compaction: the model sees all messages again. */
  readonly uncompact = (): Promise<void> => this.#setCompaction('conversation_undo_compaction');

  async #setCompaction(call: CompactionCall): Promise<void> {
    const { id } = this;
    if (id === null || this.compacting || this.answering) return;
    const { signal } = this.#watch;
    this.compacting = true;
    this.error = null;
    await this.#try(signal, async () => {
      await this.#backend.call(call, { id });
      // The last turn's compaction is out of date.
      if (!signal.aborted && this.live && isOver(this.live)) this.live = null;
      await this.#refetch(signal);
    });
    this.compacting = false;
  }

  /** Runs work and stores its error unless the user has left. Returns false on failure. */
  async #try(signal: AbortSignal, work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (thrown) {
      if (!signal.aborted) this.error = asErrorInfo(thrown);
      return false;
    }
  }

  readonly stop = (): Promise<boolean> =>
    this.#try(this.#watch.signal, () => stopTurn(this.#backend, this.live, this.shown));

  apply(event: api.AppEvent): void {
    if (event.type === 'conversation_removed' && event.id === this.id) this.startNew();
    this.messages = this.#callUpdates.apply(event, this.id, this.messages);
    if (this.temporary) this.#answerCalls();
    if (event.type !== 'conversation_changed' || event.conversation.id !== this.id) return;
    if (this.sending || this.opening || this.#isWriting) return;
    // Another window or the terminal changed the conversation.
    const { active_turn: turn, revision } = event.conversation;
    const isNews = turn === null ? revision !== this.#revision : turn !== this.#followedTurn;
    if (isNews) void this.#refetch(this.#watch.signal);
  }

  /** In a temporary chat, replaces everything after `before` with a question and its answer. */
  #ask(question: temporary.TemporaryQuestion, model: string | null): Promise<boolean> {
    const options = this.#temporaryOptions;
    return this.#startTurn(async () => {
      const asked = await temporary.ask(this.#backend, this.shown, question, model, options);
      this.messages = this.#callUpdates.overlay(asked.messages);
      return asked.started;
    });
  }

  /** In a temporary chat, follows the turn that answers the tool results. */
  #answerCalls(): void {
    if (!this.live || !isOver(this.live) || this.sending) return;
    // No other copy of the finished answer exists.
    this.messages = this.#callUpdates.overlay(this.shown);
    const turn = this.#callUpdates.takeAnswerTurn(this.live.message);
    if (turn === null) return;
    this.messages = temporary.withAnswer(this.shown, turn);
    this.#followNow(newTurn(turn, turn));
  }

  async #startTurn(work: () => Promise<temporary.StartedTurn>): Promise<boolean> {
    if (this.sending || this.answering) return false;
    const { signal } = this.#watch;
    this.sending = true;
    this.error = null;
    const begun = await this.#try(signal, async () => {
      const started = await work();
      if (signal.aborted) return;
      this.id = started.conversation;
      this.live = newTurn(started.turn, started.assistant_message);
      if (this.temporary) this.#followNow(this.live);
      else await this.#refetch(signal);
    });
    this.sending = false;
    return begun;
  }

  async #refetch(signal: AbortSignal, { id } = this): Promise<void> {
    if (id === null) return;
    await this.#try(signal, async () => {
      const conversation = await this.#callUpdates.fetchConversation(this.#backend, id);
      if (!signal.aborted) this.#display(conversation);
    });
  }

  #display(conversation: api.Conversation): void {
    this.messages = conversation.messages;
    this.setOptions(conversation.options, conversation.compression);
    this.#compaction = conversation.compaction;
    this.#revision = conversation.summary.revision;
    const turn = conversation.summary.active_turn;
    const lastMessage = conversation.messages.at(-1);
    if (turn === null || lastMessage?.role !== 'assistant') {
      // The last event may still be in flight; a finished turn stays until it is replaced.
      if (this.live && !isOver(this.live)) this.#stopWatching();
      return;
    }
    if (turn === this.#followedTurn) return;
    this.#stopWatching();
    this.#followNow(newTurn(turn, lastMessage.id));
  }

  #followNow(turn: LiveTurn): void {
    this.live = turn;
    this.#followedTurn = turn.turn;
    void this.#follow(this.#watch.signal);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    await watchToEnd(this.#backend, watchedTurnOf(this, this.#hooks), signal);
    if (signal.aborted) return;
    this.reconnecting = false;
    await this.#refetch(signal);
    if (signal.aborted || !this.live) return;
    if (!isOver(this.live)) return void (this.live = null);
    if (this.temporary) this.#answerCalls();
    // Tool results belong to the same answer.
    const awaitsTools = this.temporary && temporary.endsInToolCalls(this.live);
    const continues = this.answering || this.awaitingApproval || awaitsTools;
    if (this.key !== null && !continues) this.#hooks.turnEnded?.(this.key, this.live);
  }

  #stopWatching(): void {
    this.#watch.abort();
    this.#watch = new AbortController();
    this.#followedTurn = null;
    this.live = null;
    this.reconnecting = false;
  }
}
