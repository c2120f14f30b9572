import { describe, expect, it } from 'vitest';
import { PerformanceState, type TurnProgress } from './store.svelte';
import { FakeBackend } from '../../test/fake-backend';

const turn: TurnProgress = { turn: 't', generated: 0, done: 0, isOver: false };

describe('PerformanceState', () => {
  it('reads speeds off a turn, each at its own time', () => {
    const state = new PerformanceState(new FakeBackend());
    state.observe({ ...turn, done: 0 }, 0);
    state.observe({ ...turn, done: 100 }, 100);
    state.observe({ ...turn, done: 500 }, 500);
    state.observe({ ...turn, done: 900, generated: 20 }, 1000);
    state.observe({ ...turn, done: 900, generated: 60 }, 1500);
    expect(state.prefill).toEqual([1000, 800]);
    expect(state.decode).toEqual([40, 80]);
  });

  it('asks for nothing while nobody looks', () => {
    const backend = new FakeBackend();
    const state = new PerformanceState(backend);
    for (let n = 0; n < 50; n++) state.observe({ ...turn, generated: n }, n * 300);
    expect(backend.called).toEqual([]);
    state.open = true;
    for (let n = 50; n < 60; n++) state.observe({ ...turn, generated: n }, n * 300);
    expect(backend.called.filter((it) => it === 'kv_stats').length).toBeLessThanOrEqual(3);
    expect(backend.called.length).toBeGreaterThan(0);
  });
});
