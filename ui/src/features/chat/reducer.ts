/**
 * What a turn looks like after some of its events. Pure: the same events give the same turn, however
 * often and in whatever pieces they come. Sequence numbers start at 1 and have no gaps.
 */
import type {
  ErrorInfo,
  CompactionInfo,
  ToolCall,
  TurnEvent,
  TurnEventKind,
  TurnStats,
} from '../../backend/bindings';

export type Phase =
  | 'waiting'
  | 'queued'
  | 'loading'
  | 'compacting'
  | 'prefill'
  | 'reasoning'
  | 'answering'
  | 'done'
  | 'failed';

export interface LiveTurn {
  readonly turn: string;
  /** The assistant message that this turn writes. */
  readonly message: string;
  /** The last event folded in. */
  readonly seq: number;
  readonly phase: Phase;
  readonly position: number;
  readonly fraction: number;
  readonly done: number;
  readonly total: number;
  /** Older messages were folded for this turn. */
  readonly compaction: CompactionInfo | null;
  /** Tokens that were generated so far. */
  readonly generated: number;
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly ToolCall[];
  /** When reasoning began and ended by the page's clock. */
  readonly reasoningFromMs: number | null;
  readonly reasoningToMs: number | null;
  readonly stats: TurnStats | null;
  readonly error: ErrorInfo | null;
}

export function newTurn(turn: string, message: string): LiveTurn {
  return {
    turn,
    message,
    seq: 0,
    phase: 'waiting',
    position: 0,
    fraction: 0,
    done: 0,
    total: 0,
    compaction: null,
    generated: 0,
    text: '',
    reasoning: '',
    calls: [],
    reasoningFromMs: null,
    reasoningToMs: null,
    stats: null,
    error: null,
  };
}

export const isOver = (turn: LiveTurn): boolean => turn.phase === 'done' || turn.phase === 'failed';

export interface Folded {
  readonly turn: LiveTurn;
  /** An event was missing: what follows it was not folded in and must be asked for again. */
  readonly gap: boolean;
}

/** Folds `events` into `turn`. Events it has seen, or of another turn, change nothing. */
export function fold(turn: LiveTurn, events: readonly TurnEvent[], nowMs: number): Folded {
  let now = turn;
  for (const event of events) {
    if (event.turn !== now.turn || event.seq <= now.seq) continue;
    if (event.seq > now.seq + 1) return { turn: now, gap: true };
    now = { ...now, seq: event.seq, ...step(now, event.kind, nowMs) };
  }
  return { turn: now, gap: false };
}

function step(turn: LiveTurn, kind: TurnEventKind, nowMs: number): Partial<LiveTurn> {
  switch (kind.type) {
    case 'queued':
      return { phase: 'queued', position: kind.position };
    case 'loading':
      return { phase: 'loading', fraction: kind.fraction };
    case 'prefill':
      return { phase: 'prefill', done: kind.done, total: kind.total };
    case 'compacting':
      return { phase: 'compacting', total: kind.messages };
    case 'compacted':
      return { compaction: kind.compaction };
    case 'reasoning':
      return {
        phase: 'reasoning',
        generated: turn.generated + kind.ids.length,
        reasoning: turn.reasoning + kind.text,
        reasoningFromMs: turn.reasoningFromMs ?? nowMs,
      };
    case 'text':
      return {
        phase: 'answering',
        generated: turn.generated + kind.ids.length,
        text: turn.text + kind.text,
        ...endOfReasoning(turn, nowMs),
      };
    case 'tool_call':
      return {
        phase: 'answering',
        calls: [...turn.calls, kind.call],
        ...endOfReasoning(turn, nowMs),
      };
    case 'notice':
      // The application tells the whole window of it.
      return {};
    case 'done':
      return { phase: 'done', stats: kind.stats, ...endOfReasoning(turn, nowMs) };
    case 'failed':
      return { phase: 'failed', error: kind.error, ...endOfReasoning(turn, nowMs) };
  }
}

function endOfReasoning(turn: LiveTurn, nowMs: number): Partial<LiveTurn> {
  if (turn.reasoningFromMs === null || turn.reasoningToMs !== null) return {};
  return { reasoningToMs: nowMs };
}
