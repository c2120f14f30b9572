/** Fine-tuning runs, mirrored from the application. */
import type { Backend } from '../../backend/backend';
import type {
  AppEvent,
  TuneAnswers,
  TuneArgs,
  TuneInfo,
  TunePreview,
  TuneStep,
} from '../../backend/bindings';

export class TunesState {
  /** The latest first. */
  list = $state.raw<readonly TuneInfo[]>([]);
  loaded = $state(false);
  /** The run whose curve is shown; null: none. */
  opened = $state<string | null>(null);
  /** Steps of that run. */
  steps = $state.raw<readonly TuneStep[]>([]);
  /** Held-out prompts of that run with the answers of both models. */
  answers = $state.raw<readonly TuneAnswers[]>([]);
  /** What the run that is being prepared would learn; null: not asked, or something changed since. */
  preview = $state.raw<TunePreview | null>(null);
  /** A preview or a start is being worked on. */
  busy = $state(false);

  readonly #backend: Backend;
  #question = 0;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async load(): Promise<void> {
    this.list = await this.#backend.call('tunes_list', {});
    this.loaded = true;
    const running = this.list.find((it) => it.state.state === 'running');
    if (running && this.opened === null) await this.open(running.id);
  }

  apply(event: AppEvent): void {
    if (event.type === 'tune_removed') this.#drop(event.id);
    else if (event.type === 'tune_changed') {
      const { tune } = event;
      const wasDone = this.list.some((it) => it.id === tune.id && it.state.state === 'done');
      this.#take(tune);
      // The answers are made at the end of a run.
      if (tune.state.state === 'done' && !wasDone && this.opened === tune.id)
        void this.#read(tune.id);
    }
  }

  /** Shows the curve and the answers of a run, or none. */
  async open(id: string | null): Promise<void> {
    this.opened = id;
    this.steps = [];
    this.answers = [];
    if (id !== null) await this.#read(id);
  }

  async #read(id: string): Promise<void> {
    const { steps, answers } = await this.#backend.call('tune_get', { id });
    if (this.opened === id) [this.steps, this.answers] = [steps, answers];
  }

  /** Asks what a run would learn. An answer that is overtaken by a change is dropped. */
  async look(args: TuneArgs): Promise<void> {
    const question = ++this.#question;
    await this.#work(async () => {
      const preview = await this.#backend.call('tune_preview', args);
      if (question === this.#question) this.preview = preview;
    });
  }

  /** What was asked for has changed. */
  forgetPreview(): void {
    this.#question++;
    this.preview = null;
  }

  async start(args: TuneArgs): Promise<void> {
    await this.#work(async () => {
      const tune = await this.#backend.call('tune_start', args);
      this.#take(tune);
      this.forgetPreview();
      await this.open(tune.id);
    });
  }

  async pause(id: string): Promise<void> {
    this.#take(await this.#backend.call('tune_pause', { id }));
  }

  async resume(id: string): Promise<void> {
    this.#take(await this.#backend.call('tune_resume', { id }));
  }

  async stop(id: string): Promise<void> {
    this.#take(await this.#backend.call('tune_stop', { id }));
  }

  async remove(id: string): Promise<void> {
    await this.#backend.call('tune_remove', { id });
    this.#drop(id);
  }

  async #work(work: () => Promise<void>): Promise<void> {
    this.busy = true;
    try {
      await work();
    } finally {
      this.busy = false;
    }
  }

  #take(tune: TuneInfo): void {
    const known = this.list.some((it) => it.id === tune.id);
    this.list = known
      ? this.list.map((it) => (it.id === tune.id ? tune : it))
      : [tune, ...this.list];
    const step = tune.last;
    if (tune.id !== this.opened || !step || this.steps.at(-1)?.step === step.step) return;
    // One that was done again after an interruption counts once.
    this.steps = [...this.steps.filter((it) => it.step < step.step), step];
  }

  #drop(id: string): void {
    this.list = this.list.filter((it) => it.id !== id);
    if (this.opened === id) void this.open(null);
  }
}
