import { describe, expect, it } from 'vitest';
import { InstrumentsState } from './store.svelte';
import { newTurn } from '../chat/reducer';
import { FakeBackend } from '../../test/fake-backend';

describe('InstrumentsState', () => {
  it('reads speeds off a turn, each at its own time', () => {
    const state = new InstrumentsState(new FakeBackend());
    const turn = newTurn('t', 'm');
    state.see({ ...turn, phase: 'prefill', done: 0, total: 900 }, 0);
    state.see({ ...turn, phase: 'prefill', done: 100, total: 900 }, 100);
    state.see({ ...turn, phase: 'prefill', done: 500, total: 900 }, 500);
    state.see({ ...turn, phase: 'answering', done: 900, generated: 20 }, 1000);
    state.see({ ...turn, phase: 'answering', done: 900, generated: 60 }, 1500);
    expect(state.prefill).toEqual([1000, 800]);
    expect(state.decode).toEqual([40, 80]);
  });

  it('asks for nothing while nobody looks', () => {
    const backend = new FakeBackend();
    const state = new InstrumentsState(backend);
    for (let n = 0; n < 50; n++) state.see({ ...newTurn('t', 'm'), generated: n }, n * 300);
    expect(backend.called).toEqual([]);
    state.open = true;
    for (let n = 50; n < 60; n++) state.see({ ...newTurn('t', 'm'), generated: n }, n * 300);
    expect(backend.called.filter((it) => it === 'kv_stats').length).toBeLessThanOrEqual(3);
    expect(backend.called.length).toBeGreaterThan(0);
  });
});
