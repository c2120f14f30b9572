/** Follows a turn to its end and reconnects when the stream breaks. */
import { BackendError, asErrorInfo, type Backend } from '../../backend/backend';
import type { TurnEvent } from '../../backend/bindings';
import { delay } from '../../shared/delay';
import { reduce, isOver, type LiveTurn } from './reducer';

/** Error code: the application no longer has the events of this turn. */
const UNKNOWN_TURN = 'turn.unknown';
const MAX_ATTEMPTS = 20;
/** Delays between reconnection attempts; the last one repeats. */
const RETRY_AFTER_MS = [250, 1000, 3000, 8000];

/** Callbacks of the composition root. */
export interface ChatHooks {
  /** Called after events were applied to the turn. */
  turnAdvanced?(turn: LiveTurn, nowMs: number): void;
  /** Called when a watched turn is over and stored. */
  turnEnded?(place: string, turn: LiveTurn): void;
}

export interface WatchedTurn {
  /** The turn so far; null: no longer wanted. */
  current(): LiveTurn | null;
  /** Stores the advanced turn. */
  update(turn: LiveTurn, nowMs: number): void;
  /** Reports whether the stream is being reconnected. */
  setReconnecting(is: boolean): void;
}

/** Adapts a chat's turn for `watchToEnd`. */
export const watchedTurnOf = (
  chat: { live: LiveTurn | null; reconnecting: boolean },
  hooks: ChatHooks,
): WatchedTurn => ({
  current: () => chat.live,
  update: (turn, nowMs) => {
    chat.live = turn;
    hooks.turnAdvanced?.(turn, nowMs);
  },
  setReconnecting: (is) => (chat.reconnecting = is),
});

export async function watchToEnd(
  backend: Backend,
  watched: WatchedTurn,
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const turn = watched.current();
    if (!turn || isOver(turn) || signal.aborted) return;
    const broken = await watchOnce(backend, watched, turn, signal);
    const now = watched.current();
    if (signal.aborted || !now || isOver(now)) return;
    // The application no longer knows the turn; only the stored message remains.
    if (broken?.code === UNKNOWN_TURN || attempt >= MAX_ATTEMPTS) return;
    if (now.seq > turn.seq) attempt = 0;
    watched.setReconnecting(attempt > 0);
    const last = RETRY_AFTER_MS.length - 1;
    await delay(RETRY_AFTER_MS[Math.min(attempt, last)] ?? 0, signal);
  }
}

/** Reads one stream to its end, its failure, or its first gap. */
async function watchOnce(
  backend: Backend,
  watched: WatchedTurn,
  turn: LiveTurn,
  signal: AbortSignal,
): Promise<BackendError | null> {
  const stream = new AbortController();
  const stop = () => stream.abort();
  signal.addEventListener('abort', stop);
  const take = (events: TurnEvent[]) => {
    const now = watched.current();
    if (stream.signal.aborted || now?.turn !== turn.turn) return;
    const nowMs = Date.now();
    const result = reduce(now, events, nowMs);
    watched.update(result.turn, nowMs);
    watched.setReconnecting(false);
    if (result.gap) stream.abort();
  };
  try {
    await backend.watchTurn(turn.turn, turn.seq, take, stream.signal);
    return null;
  } catch (thrown) {
    return new BackendError(asErrorInfo(thrown));
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
