/**
 * The conversation on screen: its messages, and the turn that is answering in it. The turn belongs to
 * the application: leaving only ends the watch, and coming back replays what was missed.
 */
import { BackendError, asErrorInfo, type Backend } from '../backend/backend';
import type {
  AppEvent,
  Conversation,
  ConversationOptions,
  ErrorInfo,
  FoldInfo,
  Message,
  TurnEvent,
} from '../backend/bindings';
import { delay } from './delay';
import { fold, isOver, newTurn, type LiveTurn } from './fold';
import { withLive } from './transcript';

/** The application no longer has the events of this turn. */
const UNKNOWN_TURN = 'turn.unknown';
const MOST_ATTEMPTS = 20;
/** Waits between attempts to reach a broken stream again; the last one repeats. */
const RETRY_AFTER_MS = [250, 1000, 3000, 8000];

export class ChatState {
  /** Null: a chat that has no message yet. */
  id = $state<string | null>(null);
  messages = $state.raw<readonly Message[]>([]);
  /** What the conversation has of its own: system prompt, sampling. */
  options = $state.raw<ConversationOptions | null>(null);
  live = $state.raw<LiveTurn | null>(null);
  opening = $state(false);
  sending = $state(false);
  /** Opening or sending failed; a failed turn carries its error in its message. */
  error = $state.raw<ErrorInfo | null>(null);
  /** The stream broke and is being looked for again. */
  reconnecting = $state(false);
  /** The answer that just ended, for readers that listen instead of look. */
  announcement = $state('');

  /** Older messages are being folded because the user asked for it. */
  folding = $state(false);
  #fold = $state.raw<FoldInfo | null>(null);

  /** Up to where the model is not shown the messages any more. */
  readonly fold = $derived(this.live?.fold ?? this.#fold);
  readonly shown = $derived(withLive(this.messages, this.live));
  readonly answering = $derived(this.live !== null && !isOver(this.live));

  readonly #backend: Backend;
  #watch = new AbortController();
  /** The turn that `#follow` was begun for; it is followed once. */
  #followed: string | null = null;
  #revision = 0;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  startNew(): void {
    this.#leave();
    this.id = null;
    this.messages = [];
    this.options = null;
    this.#fold = null;
    this.opening = false;
    this.error = null;
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

  /** Sends a message; false: it was not accepted, and the text is still the user's to keep. */
  async send(text: string, model: string | null): Promise<boolean> {
    return this.#begin(() => this.#backend.call('send', { conversation: this.id, text, model }));
  }

  /** Another version of a message of the user's, answered. */
  edit(message: string, text: string): Promise<boolean> {
    return this.#begin(() => this.#backend.call('message_edit', { message, text }));
  }

  /** Another version of an answer. */
  regenerate(message: string): Promise<boolean> {
    return this.#begin(() => this.#backend.call('message_regenerate', { message }));
  }

  /** An answer that was cut goes on. */
  goOn(message: string): Promise<boolean> {
    return this.#begin(() => this.#backend.call('message_continue', { message }));
  }

  /** Looks at the branch through a message, or through a version of it. */
  async choose(message: string, version: number | null): Promise<void> {
    await this.#backend.call('message_choose', { message, version });
    await this.#refetch(this.#watch.signal);
  }

  /** Removes a message and all after it. */
  async remove(message: string): Promise<void> {
    await this.#backend.call('message_delete', { message });
    await this.#refetch(this.#watch.signal);
  }

  async restore(message: string): Promise<void> {
    await this.#backend.call('message_restore', { message });
    await this.#refetch(this.#watch.signal);
  }

  /** Has older messages folded now. */
  async compact(): Promise<void> {
    await this.#refold(async (id) => {
      await this.#backend.call('conversation_compact', { id });
    });
  }

  /** Has the model shown everything again. */
  async unfold(): Promise<void> {
    await this.#refold(async (id) => {
      await this.#backend.call('conversation_unfold', { id });
    });
  }

  async #refold(work: (id: string) => Promise<void>): Promise<void> {
    const { id } = this;
    if (id === null || this.folding || this.answering) return;
    const { signal } = this.#watch;
    this.folding = true;
    this.error = null;
    try {
      await work(id);
      // What the last turn told is overtaken.
      if (!signal.aborted && this.live && isOver(this.live)) this.live = null;
      await this.#refetch(signal);
    } catch (thrown) {
      if (!signal.aborted) this.error = asErrorInfo(thrown);
    } finally {
      this.folding = false;
    }
  }

  async stop(): Promise<void> {
    if (!this.live || isOver(this.live)) return;
    try {
      await this.#backend.call('turn_cancel', { turn: this.live.turn });
    } catch (thrown) {
      this.error = asErrorInfo(thrown);
    }
  }

  apply(event: AppEvent): void {
    if (event.type === 'conversation_removed' && event.id === this.id) this.startNew();
    if (event.type !== 'conversation_changed' || event.conversation.id !== this.id) return;
    if (this.sending || this.opening || this.answering) return;
    // Another window or the terminal was at work here.
    const { active_turn, revision } = event.conversation;
    const news =
      active_turn !== null ? active_turn !== this.#followed : revision !== this.#revision;
    if (news) void this.#refetch(this.#watch.signal);
  }

  async #begin(
    work: () => Promise<{ turn: string; conversation: string; assistant_message: string }>,
  ): Promise<boolean> {
    if (this.sending || this.answering) return false;
    const { signal } = this.#watch;
    this.sending = true;
    this.error = null;
    try {
      const started = await work();
      if (signal.aborted) return true;
      this.id = started.conversation;
      this.live = newTurn(started.turn, started.assistant_message);
      await this.#refetch(signal);
      return true;
    } catch (thrown) {
      if (!signal.aborted) this.error = asErrorInfo(thrown);
      return false;
    } finally {
      this.sending = false;
    }
  }

  async #refetch(signal: AbortSignal): Promise<void> {
    const id = this.id;
    if (id === null) return;
    try {
      const conversation = await this.#backend.call('conversation_get', { id });
      if (!signal.aborted) this.#show(conversation);
    } catch (thrown) {
      if (!signal.aborted) this.error = asErrorInfo(thrown);
    }
  }

  #show(conversation: Conversation): void {
    this.messages = conversation.messages;
    this.options = conversation.options;
    this.#fold = conversation.fold;
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
    this.live = newTurn(turn, writing.id);
    this.#followed = turn;
    void this.#follow(this.#watch.signal);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    for (let attempt = 0; this.live && !isOver(this.live) && !signal.aborted; attempt++) {
      const before = this.live.seq;
      const broken = await this.#watchOnce(this.live, signal);
      if (signal.aborted || !this.live || isOver(this.live)) break;
      // The application no longer knows the turn: what is stored is all there is.
      if (broken?.code === UNKNOWN_TURN || attempt >= MOST_ATTEMPTS) break;
      if (this.live.seq > before) attempt = 0;
      this.reconnecting = attempt > 0;
      const last = RETRY_AFTER_MS.length - 1;
      await delay(RETRY_AFTER_MS[Math.min(attempt, last)] ?? 0, signal);
    }
    if (signal.aborted) return;
    this.reconnecting = false;
    if (this.live?.phase === 'done') this.announcement = this.live.text;
    await this.#refetch(signal);
    if (!signal.aborted && this.live && !isOver(this.live)) this.live = null;
  }

  /** One stream to its end, its break, or its first gap. */
  async #watchOnce(turn: LiveTurn, signal: AbortSignal): Promise<BackendError | null> {
    const stream = new AbortController();
    const stop = () => stream.abort();
    signal.addEventListener('abort', stop);
    const take = (events: TurnEvent[]) => {
      if (stream.signal.aborted || this.live?.turn !== turn.turn) return;
      const folded = fold(this.live, events, Date.now());
      this.live = folded.turn;
      this.reconnecting = false;
      if (folded.gap) stream.abort();
    };
    try {
      await this.#backend.watchTurn(turn.turn, turn.seq, take, stream.signal);
      return null;
    } catch (thrown) {
      return new BackendError(asErrorInfo(thrown));
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  #leave(): void {
    this.#watch.abort();
    this.#watch = new AbortController();
    this.#followed = null;
    this.live = null;
    this.reconnecting = false;
  }
}
