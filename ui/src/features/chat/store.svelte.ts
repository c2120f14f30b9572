/**
 * The conversation on screen: its messages, and the turn that is answering in it. The turn belongs to
 * the application: leaving only ends the watch, and coming back replays what was missed.
 */
import { asErrorInfo, type Backend } from '../../backend/backend';
import type * as api from '../../backend/bindings';
import { callOf, stop, ToldCalls } from './tool-calls';
import { send, type Extra } from './send-message';
import { isOver, newTurn, type LiveTurn } from './reducer';
import { answered, ask, calls, leaveCalls, TEMPORARY, upTo } from './temporary-chat';
import type { Asking, Begun } from './temporary-chat';
import { withLive } from './turn-overlay';
import { watchedIn, watchToEnd, type ChatHooks } from './watch-turn';

export class ChatState {
  /** Null: a chat that has no message yet. */
  id = $state<string | null>(null);
  messages = $state.raw<readonly api.Message[]>([]);
  /** What the conversation has of its own: system prompt, sampling. */
  options = $state.raw<api.ConversationOptions | null>(null);
  /** What becomes of it when it is longer than the context; null: as the setting says. */
  compression = $state.raw<api.CompactionStrategy | null>(null);
  live = $state.raw<LiveTurn | null>(null);
  /** Kept nowhere: its messages are this page's alone, and go with it. */
  temporary = $state(false);
  opening = $state(false);
  sending = $state(false);
  /** Opening or sending failed; a failed turn carries its error in its message. */
  error = $state.raw<api.ErrorInfo | null>(null);
  /** The stream broke and is being looked for again. */
  reconnecting = $state(false);

  /** Older messages are being folded because the user asked for it. */
  folding = $state(false);
  #compaction = $state.raw<api.CompactionInfo | null>(null);

  /** Up to where the model is not shown the messages any more. */
  readonly compaction = $derived(this.live?.compaction ?? this.#compaction);
  readonly shown = $derived(withLive(this.messages, this.live));
  readonly #writing = $derived(this.live !== null && !isOver(this.live));
  /** The first call that waits for leave. */
  readonly asking = $derived(callOf(this.shown, 'asking'));
  readonly answering = $derived(this.#writing || callOf(this.shown, 'running') !== null);
  /** What it goes by in this window; null: a chat that has no message yet. */
  readonly place = $derived(this.temporary ? TEMPORARY : this.id);

  readonly #backend: Backend;
  readonly #hooks: ChatHooks;
  #watch = new AbortController();
  /** The turn that `#follow` was begun for; it is followed once. */
  #followed: string | null = null;
  #revision = 0;
  readonly #told = new ToldCalls();
  /** What a chat that is kept nowhere has of its own. */
  #own: api.ConversationOptions | null = null;

  constructor(backend: Backend, hooks: ChatHooks = {}) {
    this.#backend = backend;
    this.#hooks = hooks;
  }

  startNew(): void {
    if (this.temporary) void leaveCalls(this.#backend, this.shown);
    this.#leave();
    this.id = null;
    this.temporary = false;
    this.messages = [];
    this.owns(null, null);
    this.#compaction = null;
    this.opening = false;
    this.error = null;
    this.#told.clear();
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
    // It saves time only: whoever sends sooner, or without it, is answered the same.
    if (!this.error) this.#backend.call('conversation_prefetch', { id }).catch(() => undefined);
  }

  /** It was given these of its own. */
  owns(options: api.ConversationOptions | null, compression: api.CompactionStrategy | null): void {
    this.options = options;
    this.compression = compression;
  }

  /** Sends a message; false: it was not accepted, and the text is still the user's to keep. */
  async send(text: string, model: string | null, extra: Extra = {}): Promise<boolean> {
    const { files = [], ...own } = extra;
    this.#own = own.options ?? null;
    if (this.temporary) return this.#ask({ before: this.shown, question: text, files }, model);
    return this.#begin(() => send(this.#backend, this.id, { text, model, ...extra }));
  }

  /** Another version of a message of the user's, answered. */
  edit(message: string, text: string): Promise<boolean> {
    const asked = this.temporary ? upTo(this.shown, message) : null;
    if (asked) return this.#ask({ ...asked, question: text }, null);
    return this.#begin(() => this.#backend.call('message_edit', { message, text }));
  }

  /** Another version of an answer, by the conversation's model or another, with other settings for it alone. */
  regenerate(message: string, model: string | null = null, once?: api.Once): Promise<boolean> {
    const again = this.temporary ? upTo(this.shown, message) : null;
    if (again) return this.#ask(again, model);
    return this.#begin(() =>
      this.#backend.call('message_regenerate', { message, model, ...(once && { once }) }),
    );
  }

  /** Another version of an answer: another token in one place, and on from it. */
  readonly pick = (message: string, index: number, token: number): Promise<boolean> =>
    this.#begin(() => this.#backend.call('message_pick', { message, index, token }));

  /** An answer that was cut goes on. */
  readonly goOn = (message: string): Promise<boolean> =>
    this.#begin(() => this.#backend.call('message_continue', { message }));

  /** Looks at the branch through a message, or through a version of it. */
  readonly choose = (message: string, version: number | null): Promise<void> =>
    this.changed(this.#backend.call('message_choose', { message, version }));

  /** Removes a message and all after it. */
  readonly remove = (message: string): Promise<void> =>
    this.changed(this.#backend.call('message_delete', { message }));

  readonly restore = (message: string): Promise<void> =>
    this.changed(this.#backend.call('message_restore', { message }));

  /** Something is done to the open conversation, which is looked at anew then. */
  readonly changed = (work: Promise<unknown>): Promise<void> =>
    work.then(() => this.#refetch(this.#watch.signal));

  /** Has older messages folded now. */
  readonly compact = (): Promise<void> => this.#refold('conversation_compact');

  /** Has the model shown everything again. */
  readonly unfold = (): Promise<void> => this.#refold('conversation_undo_compaction');

  async #refold(name: 'conversation_compact' | 'conversation_undo_compaction'): Promise<void> {
    const { id } = this;
    if (id === null || this.folding || this.answering) return;
    const { signal } = this.#watch;
    this.folding = true;
    this.error = null;
    await this.#try(signal, async () => {
      await this.#backend.call(name, { id });
      // What the last turn told is overtaken.
      if (!signal.aborted && this.live && isOver(this.live)) this.live = null;
      await this.#refetch(signal);
    });
    this.folding = false;
  }

  /** Says what went wrong where it is still looked at; false: something did. */
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
    this.#try(this.#watch.signal, () => stop(this.#backend, this.live, this.shown));

  apply(event: api.AppEvent): void {
    if (event.type === 'conversation_removed' && event.id === this.id) this.startNew();
    this.messages = this.#told.apply(event, this.id, this.messages);
    if (this.temporary) this.#answerCalls();
    if (event.type !== 'conversation_changed' || event.conversation.id !== this.id) return;
    if (this.sending || this.opening || this.#writing) return;
    // Another window or the terminal was at work here.
    const { active_turn: turn, revision } = event.conversation;
    const news = turn === null ? revision !== this.#revision : turn !== this.#followed;
    if (news) void this.#refetch(this.#watch.signal);
  }

  /** In a chat that is kept nowhere: what comes after `before` is this question and its answer. */
  #ask(asking: Asking, model: string | null): Promise<boolean> {
    return this.#begin(async () => {
      const asked = await ask(this.#backend, this.shown, asking, model, this.#own);
      this.messages = this.#told.over(asked.messages);
      return asked.started;
    });
  }

  /** In such a chat: what the calls of its last answer brought is being answered. */
  #answerCalls(): void {
    if (!this.live || !isOver(this.live) || this.sending) return;
    // Nobody else has what it came to.
    this.messages = this.#told.over(this.shown);
    const turn = this.#told.takeNext(this.live.message);
    if (turn === null) return;
    this.messages = answered(this.shown, turn);
    this.#followNow(newTurn(turn, turn));
  }

  async #begin(work: () => Promise<Begun>): Promise<boolean> {
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
      const conversation = await this.#told.get(this.#backend, id);
      if (!signal.aborted) this.#show(conversation);
    });
  }

  #show(conversation: api.Conversation): void {
    this.messages = conversation.messages;
    this.owns(conversation.options, conversation.compression);
    this.#compaction = conversation.compaction;
    this.#revision = conversation.summary.revision;
    const turn = conversation.summary.active_turn;
    const writing = conversation.messages.at(-1);
    if (turn === null || writing?.role !== 'assistant') {
      // The last event may still be on its way; a turn that is over stays until it is replaced.
      if (this.live && !isOver(this.live)) this.#leave();
      return;
    }
    if (turn === this.#followed) return;
    this.#leave();
    this.#followNow(newTurn(turn, writing.id));
  }

  #followNow(turn: LiveTurn): void {
    this.live = turn;
    this.#followed = turn.turn;
    void this.#follow(this.#watch.signal);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    await watchToEnd(this.#backend, watchedIn(this, this.#hooks), signal);
    if (signal.aborted) return;
    this.reconnecting = false;
    await this.#refetch(signal);
    if (signal.aborted || !this.live) return;
    if (!isOver(this.live)) {
      this.live = null;
      return;
    }
    if (this.temporary) this.#answerCalls();
    // What tools bring belongs to the same answer.
    const goesOn = this.answering || this.asking || (this.temporary && calls(this.live));
    if (this.place !== null && !goesOn) this.#hooks.ended?.(this.place, this.live);
  }

  #leave(): void {
    this.#watch.abort();
    this.#watch = new AbortController();
    this.#followed = null;
    this.live = null;
    this.reconnecting = false;
  }
}
