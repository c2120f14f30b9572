/**
 * Performance figures: recent speeds, memory and cache use. Speeds come from the events of the watched turn;
 * everything else is requested only while the panel is open and something changes.
 */
import type { Backend } from '../../backend/backend';
import type { AppEvent, KvInfo, MemoryInfo, TurnStats } from '../../backend/bindings';

/** Minimum time between two points of a curve. */
const POINT_MS = 250;
const MAX_POINTS = 160;
const REFRESH_INTERVAL_MS = 1_000;

type Curve = readonly number[];

/** What this store reads from a running turn. */
export interface TurnProgress {
  readonly turn: string;
  /** Tokens written so far. */
  readonly generated: number;
  /** Prompt tokens read so far. */
  readonly done: number;
  readonly isOver: boolean;
}

export class PerformanceState {
  /** The panel is open. */
  open = $state(false);
  /** Tokens per second, over recent intervals with activity. */
  decode = $state.raw<Curve>([]);
  prefill = $state.raw<Curve>([]);
  /** Bytes of main memory used by the program. */
  processMemory = $state.raw<Curve>([]);
  kv = $state.raw<KvInfo | null>(null);
  /** Of the whole computer. Null: not loaded yet, or unknown. */
  systemMemory = $state.raw<MemoryInfo | null>(null);
  /** Statistics of the last turn that was watched to its end. */
  lastStats = $state.raw<TurnStats | null>(null);

  readonly #backend: Backend;
  #previous: { turn: string; atMs: number; generated: number; done: number } | null = null;
  #refreshedMs = 0;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  toggle(): void {
    this.open = !this.open;
    if (this.open) void this.refresh();
  }

  observe(turn: TurnProgress, nowMs: number): void {
    const { generated, done } = turn;
    const previous = this.#previous;
    if (previous?.turn !== turn.turn) {
      this.#previous = { turn: turn.turn, atMs: nowMs, generated, done };
      return;
    }
    const ms = nowMs - previous.atMs;
    if (ms < POINT_MS || turn.isOver) return;
    this.#previous = { turn: turn.turn, atMs: nowMs, generated, done };
    const rate = (from: number, to: number) => ((to - from) * 1000) / ms;
    if (generated > previous.generated) {
      this.decode = append(this.decode, rate(previous.generated, generated));
    }
    if (done > previous.done) this.prefill = append(this.prefill, rate(previous.done, done));
    if (this.open && nowMs - this.#refreshedMs >= REFRESH_INTERVAL_MS) {
      this.#refreshedMs = nowMs;
      void this.refresh();
    }
  }

  turnEnded(stats: TurnStats | null): void {
    this.lastStats = stats ?? this.lastStats;
    this.#previous = null;
    void (this.open ? this.refresh() : this.refreshMemory());
  }

  async refresh(): Promise<void> {
    try {
      this.kv = await this.#backend.call('kv_stats', {});
    } catch {
      // Missing figures are shown as missing.
      this.kv = null;
    }
    await this.refreshMemory();
    const ours = this.systemMemory?.ours_bytes ?? null;
    if (ours !== null) this.processMemory = append(this.processMemory, ours);
  }

  /** Refreshes the computer's memory use. Called after changes, never by a timer. */
  async refreshMemory(): Promise<void> {
    this.systemMemory = await this.#backend.call('machine_memory', {}).catch(() => null);
  }

  apply(event: AppEvent): void {
    if (event.type !== 'model_changed') return;
    const { state } = event.model.state;
    if (state === 'ready' || state === 'unloaded') void this.refreshMemory();
  }
}

const append = (curve: Curve, value: number): Curve => [...curve, value].slice(-MAX_POINTS);
