/** A transport that a test controls by hand. */
import {
  BackendError,
  type Backend,
  type ArgsOf,
  type CallName,
  type ResultOf,
} from '../backend/backend';
import type { TurnEvent, TurnEventKind } from '../backend/bindings';

type Answer<N extends CallName> = (args: ArgsOf<N>) => ResultOf<N>;

interface Watcher {
  turn: string;
  onEvents: (events: TurnEvent[]) => void;
  resolve: () => void;
  reject: (error: BackendError) => void;
}

export class FakeBackend implements Backend {
  readonly kind = 'browser';
  readonly called: CallName[] = [];
  /** Turn and sequence number of every watch that was started. */
  readonly watched: [string, number][] = [];
  readonly #answers = new Map<CallName, (args: never) => unknown>();
  readonly #log = new Map<string, TurnEvent[]>();
  #watchers: Watcher[] = [];

  on<N extends CallName>(name: N, answer: Answer<N>): void {
    this.#answers.set(name, answer);
  }

  async call<N extends CallName>(name: N, args: ArgsOf<N>): Promise<ResultOf<N>> {
    this.called.push(name);
    const answer = this.#answers.get(name) as Answer<N> | undefined;
    if (!answer) throw new Error(`the test has no answer to ${name}`);
    return answer(args);
  }

  openLink(): Promise<void> {
    return Promise.resolve();
  }

  previewFrame(scripts: boolean): string {
    return `/preview/${scripts ? 'scripts' : 'static'}`;
  }

  watchTurn(
    turn: string,
    afterSeq: number,
    onEvents: (events: TurnEvent[]) => void,
    signal: AbortSignal,
  ): Promise<void> {
    this.watched.push([turn, afterSeq]);
    return new Promise((resolve, reject) => {
      const watcher = { turn, onEvents, resolve, reject };
      this.#watchers.push(watcher);
      signal.addEventListener('abort', () => {
        this.#watchers = this.#watchers.filter((it) => it !== watcher);
        resolve();
      });
      const missed = (this.#log.get(turn) ?? []).filter((event) => event.seq > afterSeq);
      if (missed.length > 0) onEvents(missed);
    });
  }

  watchApp(): Promise<void> {
    return new Promise(() => undefined);
  }

  emit(turn: string, kinds: TurnEventKind[]): void {
    const events = kinds.map((kind) => this.#append(turn, kind));
    this.#of(turn).forEach((it) => it.onEvents(events));
  }

  /** Records an event without delivering it to current watchers. */
  lose(turn: string, kind: TurnEventKind): void {
    this.#append(turn, kind);
  }

  end(turn: string): void {
    this.#of(turn).forEach((it) => it.resolve());
  }

  breakOff(turn: string, code = 'ui.unreachable'): void {
    const broken = this.#of(turn);
    this.#watchers = this.#watchers.filter((it) => it.turn !== turn);
    const error = new BackendError({ code, message: 'Broken.', remedy: '' });
    broken.forEach((it) => it.reject(error));
  }

  #of(turn: string): Watcher[] {
    return this.#watchers.filter((it) => it.turn === turn);
  }

  #append(turn: string, kind: TurnEventKind): TurnEvent {
    const log = this.#log.get(turn) ?? [];
    const event = { seq: log.length + 1, turn, kind };
    this.#log.set(turn, [...log, event]);
    return event;
  }
}
