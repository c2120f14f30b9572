import { describe, expect, it } from 'vitest';
import type { Backend } from '../../backend/backend';
import type { TuneInfo, TunePreview, TuneStep } from '../../backend/bindings';
import { TunesState } from './store.svelte';

const step = (n: number): TuneStep => ({
  step: n,
  loss: 1 / n,
  held_out: null,
  tok_s: 1,
  seconds: 1,
});
const tune = (
  id: string,
  last: number,
  state: TuneInfo['state'] = { state: 'running' },
): TuneInfo => ({
  id,
  model: 'm',
  data: 'd',
  chats: null,
  state,
  n_steps: 9,
  last: last > 0 ? step(last) : null,
  before: null,
  seconds_left: null,
  created_ms: 0,
  folder: '/f',
  tuned: null,
});
const ARGS = { model: 'm', name: 'x', data: { from: 'chats' as const, ids: [] } };

function stateWith(calls: Record<string, (args: unknown) => unknown>): TunesState {
  const call = (name: string, args: unknown) => Promise.resolve(calls[name]?.(args));
  return new TunesState({ call } as unknown as Backend);
}

describe('fine-tuning runs', () => {
  it('opens the run that trains and follows its steps', async () => {
    const state = stateWith({
      tunes_list: () => [tune('a', 2), tune('b', 1, { state: 'paused' })],
      tune_get: () => ({ info: tune('a', 2), steps: [step(1), step(2)], answers: [] }),
    });
    await state.load();
    expect([state.opened, state.steps.map((it) => it.step)]).toEqual(['a', [1, 2]]);
    state.apply({ type: 'tune_changed', tune: tune('a', 3) });
    state.apply({ type: 'tune_changed', tune: tune('a', 3) });
    state.apply({ type: 'tune_changed', tune: tune('b', 2) });
    expect(state.steps.map((it) => it.step)).toEqual([1, 2, 3]);
    state.apply({ type: 'tune_changed', tune: tune('a', 2) });
    expect(state.steps.map((it) => it.step)).toEqual([1, 2]);
    state.apply({ type: 'tune_removed', id: 'a' });
    expect([state.opened, state.list.map((it) => it.id)]).toEqual([null, ['b']]);
  });

  it('reads the answers once a run that is shown is done', async () => {
    const answers = [{ line: 1, prompt: 'p', expected: 'e', base: 'b', tuned: 't' }];
    const report = {
      before: 2,
      after: 1,
      steps: 2,
      stopped_early: false,
      worse_than_before: false,
    };
    let isDone = false;
    let reads = 0;
    const state = stateWith({
      tunes_list: () => [tune('a', 1)],
      tune_get: () => {
        reads++;
        return { info: tune('a', 2), steps: [step(1), step(2)], answers: isDone ? answers : [] };
      },
    });
    await state.load();
    isDone = true;
    const done = tune('a', 2, { state: 'done', report });
    state.apply({ type: 'tune_changed', tune: done });
    await Promise.resolve();
    await Promise.resolve();
    expect([state.answers, state.steps.length]).toEqual([answers, 2]);
    state.apply({ type: 'tune_changed', tune: done });
    expect(reads).toBe(2);
    await state.open(null);
    expect(state.answers).toEqual([]);
  });

  it('drops a preview of something else', async () => {
    let answer: (preview: TunePreview) => void = () => undefined;
    const state = stateWith({ tune_preview: () => new Promise((resolve) => (answer = resolve)) });
    const looking = state.look(ARGS);
    expect(state.busy).toBe(true);
    state.forgetPreview();
    answer({} as TunePreview);
    await looking;
    expect([state.preview, state.busy]).toEqual([null, false]);
  });

  it('is not busy after a failure', async () => {
    const fails = () => Promise.reject(new Error('no'));
    const state = stateWith({ tune_start: fails });
    await expect(state.start(ARGS)).rejects.toThrow('no');
    expect([state.busy, state.list]).toEqual([false, []]);
  });
});
