/** Follows a turn to its end, however often the stream to it breaks. */
import { BackendError, asErrorInfo, type Backend } from '../../backend/backend';
import type { TurnEvent } from '../../backend/bindings';
import { delay } from '../../shared/delay';
import { fold, isOver, type LiveTurn } from './reducer';

/** The application no longer has the events of this turn. */
const UNKNOWN_TURN = 'turn.unknown';
const MOST_ATTEMPTS = 20;
/** Waits between attempts to reach a broken stream again; the last one repeats. */
const RETRY_AFTER_MS = [250, 1000, 3000, 8000];

/** Who else wants to know. */
export interface ChatHooks {
  /** A turn went on. */
  moved?(turn: LiveTurn, nowMs: number): void;
  /** A turn that was watched to its end is over and stored. */
  ended?(place: string, turn: LiveTurn): void;
}

export interface Watched {
  /** As it is folded so far; null: nobody wants it any more. */
  now(): LiveTurn | null;
  /** It has come so far. */
  put(turn: LiveTurn, nowMs: number): void;
  /** The stream broke and is looked for, or is there again. */
  reconnecting(is: boolean): void;
}

/** The turn of a chat, as `watchToEnd` is to see it. */
export const watchedIn = (
  chat: { live: LiveTurn | null; reconnecting: boolean },
  hooks: ChatHooks,
): Watched => ({
  now: () => chat.live,
  put: (turn, nowMs) => {
    chat.live = turn;
    hooks.moved?.(turn, nowMs);
  },
  reconnecting: (is) => (chat.reconnecting = is),
});

export async function watchToEnd(
  backend: Backend,
  watched: Watched,
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const turn = watched.now();
    if (!turn || isOver(turn) || signal.aborted) return;
    const broken = await watchOnce(backend, watched, turn, signal);
    const now = watched.now();
    if (signal.aborted || !now || isOver(now)) return;
    // The application no longer knows the turn: what is stored is all there is.
    if (broken?.code === UNKNOWN_TURN || attempt >= MOST_ATTEMPTS) return;
    if (now.seq > turn.seq) attempt = 0;
    watched.reconnecting(attempt > 0);
    const last = RETRY_AFTER_MS.length - 1;
    await delay(RETRY_AFTER_MS[Math.min(attempt, last)] ?? 0, signal);
  }
}

/** One stream to its end, its break, or its first gap. */
async function watchOnce(
  backend: Backend,
  watched: Watched,
  turn: LiveTurn,
  signal: AbortSignal,
): Promise<BackendError | null> {
  const stream = new AbortController();
  const stop = () => stream.abort();
  signal.addEventListener('abort', stop);
  const take = (events: TurnEvent[]) => {
    const now = watched.now();
    if (stream.signal.aborted || now?.turn !== turn.turn) return;
    const nowMs = Date.now();
    const folded = fold(now, events, nowMs);
    watched.put(folded.turn, nowMs);
    watched.reconnecting(false);
    if (folded.gap) stream.abort();
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
