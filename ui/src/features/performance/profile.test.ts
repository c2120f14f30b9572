import { describe, expect, it } from 'vitest';
import type { ProfileInfo } from '../../backend/bindings';
import { millis } from '../../shared/format';
import { ProfileState } from './profile.svelte';
import { FakeBackend } from '../../test/fake-backend';

const OFF: ProfileInfo = { is_on: false, answer: null };
const MEASURED: ProfileInfo = {
  is_on: true,
  answer: { model: 'starter', parts: [], n_left_out: 0 },
};

describe('ProfileState', () => {
  it('asks after an answer only while answers are measured', async () => {
    const backend = new FakeBackend();
    let now = OFF;
    backend.on('profile', () => now);
    backend.on('profile_switch', ({ on }) => (now = { is_on: on, answer: null }));
    const state = new ProfileState(backend);
    state.turnEnded();
    expect(backend.called).toEqual([]);
    await state.refresh();
    expect(state.info).toEqual(OFF);
    state.turnEnded();
    expect(backend.called).toEqual(['profile']);
    await state.setEnabled(true);
    now = MEASURED;
    state.turnEnded();
    expect(backend.called).toEqual(['profile', 'profile_switch', 'profile']);
    await expect.poll(() => state.info).toEqual(MEASURED);
    await state.setEnabled(false);
    expect(state.info).toEqual(OFF);
  });

  it('shows nothing where nothing can be had', async () => {
    const state = new ProfileState(new FakeBackend());
    await state.refresh();
    expect(state.info).toBeNull();
  });
});

describe('millis', () => {
  it('has as many places as say something', () => {
    const shown = [0.0412, 0.96, 1.25, 42.04, 99.97, 640, 1499].map(millis);
    expect(shown).toEqual(['0.041ms', '0.960ms', '1.3ms', '42.0ms', '100ms', '640ms', '1.50s']);
  });
});
