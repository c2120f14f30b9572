/**
 * Reduces turn events to the state of a turn. Pure: the same events give the same turn, however often and
 * in whatever batches they arrive. Sequence numbers start at 1 and have no gaps.
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
  /** Sequence number of the last applied event. */
  readonly seq: number;
  readonly phase: Phase;
  readonly position: number;
  readonly fraction: number;
  readonly done: number;
  readonly total: number;
  /** Compaction that was made for this turn. */
  readonly compaction: CompactionInfo | null;
  /** Tokens generated so far. */
  readonly generated: number;
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly ToolCall[];
  /** Start and end of reasoning by the page's clock. */
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

export interface ReduceResult {
  readonly turn: LiveTurn;
  /** An event is missing: later ones were not applied and must be requested again. */
  readonly gap: boolean;
}

/** Applies `events` to `turn`. Events of another turn and events already applied are ignored. */
export function reduce(turn: LiveTurn, events: readonly TurnEvent[], nowMs: number): ReduceResult {
  let now = turn;
  for (const event of events) {
    if (event.turn !== now.turn || event.seq <= now.seq) continue;
    if (event.seq > now.seq + 1) return { turn: now, gap: true };
    now = { ...now, seq: event.seq, ...changeFor(now, event.kind, nowMs) };
  }
  return { turn: now, gap: false };
}

function changeFor(turn: LiveTurn, kind: TurnEventKind, nowMs: number): Partial<LiveTurn> {
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
    case 'logprobs':
      // For programs; the window asks for them when an answer is inspected.
      return {};
    case 'text':
      return {
        phase: 'answering',
        generated: turn.generated + kind.ids.length,
        text: turn.text + kind.text,
        ...endOfReasoning(turn, nowMs),
      };
    case 'revised':
      // What looked like the answer was reasoning.
      return {
        phase: 'answering',
        text: kind.text,
        reasoning: kind.reasoning,
        reasoningFromMs: turn.reasoningFromMs ?? nowMs,
        reasoningToMs: nowMs,
      };
    case 'tool_call':
      return {
        phase: 'answering',
        calls: [...turn.calls, kind.call],
        ...endOfReasoning(turn, nowMs),
      };
    case 'notice':
      // The whole window gets it as an application event.
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
