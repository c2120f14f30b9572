/**
 * What the work looks like in figures: speeds as they were in the last moments of work, and what contexts take
 * of memory and disk. Speeds are read off the events of the turn that is watched; the rest is asked for only
 * while someone looks and something happens.
 */
import type { Backend } from '../../backend/backend';
import type { AppEvent, KvInfo, MemoryInfo, TurnStats } from '../../backend/bindings';

/** A point of a curve stands for at least so much time. */
const POINT_MS = 250;
const MOST_POINTS = 160;
const ASK_EVERY_MS = 1_000;

type Curve = readonly number[];

/** What this store reads of a running turn. */
export interface TurnProgress {
  readonly turn: string;
  /** Tokens written so far. */
  readonly generated: number;
  /** Prompt tokens read so far. */
  readonly done: number;
  readonly isOver: boolean;
}

export class InstrumentsState {
  /** The panel is open. */
  open = $state(false);
  /** Tokens a second, over the last moments in which any were written or read. */
  decode = $state.raw<Curve>([]);
  prefill = $state.raw<Curve>([]);
  /** Bytes that contexts take in memory. */
  memory = $state.raw<Curve>([]);
  /** Bytes of main memory that the program takes. */
  ours = $state.raw<Curve>([]);
  /** Shares of prompts that were not computed again, by turn. */
  hits = $state.raw<Curve>([]);
  kv = $state.raw<KvInfo | null>(null);
  /** Of the whole computer. Null: not asked for yet, or nobody says. */
  machine = $state.raw<MemoryInfo | null>(null);
  /** Of the last turn that was watched to its end. */
  last = $state.raw<TurnStats | null>(null);

  readonly #backend: Backend;
  #before: { turn: string; atMs: number; generated: number; done: number } | null = null;
  #askedMs = 0;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  toggle(): void {
    this.open = !this.open;
    if (this.open) void this.ask();
  }

  see(turn: TurnProgress, nowMs: number): void {
    const { generated, done } = turn;
    const before = this.#before;
    if (before?.turn !== turn.turn) {
      this.#before = { turn: turn.turn, atMs: nowMs, generated, done };
      return;
    }
    const ms = nowMs - before.atMs;
    if (ms < POINT_MS || turn.isOver) return;
    this.#before = { turn: turn.turn, atMs: nowMs, generated, done };
    const rate = (from: number, to: number) => ((to - from) * 1000) / ms;
    if (generated > before.generated) {
      this.decode = grown(this.decode, rate(before.generated, generated));
    }
    if (done > before.done) this.prefill = grown(this.prefill, rate(before.done, done));
    if (this.open && nowMs - this.#askedMs >= ASK_EVERY_MS) {
      this.#askedMs = nowMs;
      void this.ask();
    }
  }

  ended(stats: TurnStats | null): void {
    this.last = stats ?? this.last;
    this.#before = null;
    const { prompt_tokens: all = 0, reused_tokens: again = 0 } = stats ?? {};
    if (all > 0) this.hits = grown(this.hits, again / all);
    void (this.open ? this.ask() : this.weigh());
  }

  async ask(): Promise<void> {
    try {
      this.kv = await this.#backend.call('kv_stats', {});
      this.memory = grown(this.memory, this.kv.memory.bytes);
    } catch {
      // Figures that can't be had are shown as missing.
      this.kv = null;
    }
    await this.weigh();
    const ours = this.machine?.ours_bytes ?? null;
    if (ours !== null) this.ours = grown(this.ours, ours);
  }

  /** Asks how full the computer's memory is: when something has changed it, never by the clock. */
  async weigh(): Promise<void> {
    this.machine = await this.#backend.call('machine_memory', {}).catch(() => null);
  }

  apply(event: AppEvent): void {
    if (event.type !== 'model_changed') return;
    const { state } = event.model.state;
    if (state === 'ready' || state === 'unloaded') void this.weigh();
  }
}

const grown = (curve: Curve, value: number): Curve => [...curve, value].slice(-MOST_POINTS);
