import { describe, expect, it } from 'vitest';
import { InstrumentsState, type TurnProgress } from './store.svelte';
import { FakeBackend } from '../../test/fake-backend';

const turn: TurnProgress = { turn: 't', generated: 0, done: 0, isOver: false };

describe('InstrumentsState', () => {
  it('reads speeds off a turn, each at its own time', () => {
    const state = new InstrumentsState(new FakeBackend());
    state.see({ ...turn, done: 0 }, 0);
    state.see({ ...turn, done: 100 }, 100);
    state.see({ ...turn, done: 500 }, 500);
    state.see({ ...turn, done: 900, generated: 20 }, 1000);
    state.see({ ...turn, done: 900, generated: 60 }, 1500);
    expect(state.prefill).toEqual([1000, 800]);
    expect(state.decode).toEqual([40, 80]);
  });

  it('asks for nothing while nobody looks', () => {
    const backend = new FakeBackend();
    const state = new InstrumentsState(backend);
    for (let n = 0; n < 50; n++) state.see({ ...turn, generated: n }, n * 300);
    expect(backend.called).toEqual([]);
    state.open = true;
    for (let n = 50; n < 60; n++) state.see({ ...turn, generated: n }, n * 300);
    expect(backend.called.filter((it) => it === 'kv_stats').length).toBeLessThanOrEqual(3);
    expect(backend.called.length).toBeGreaterThan(0);
  });
});
