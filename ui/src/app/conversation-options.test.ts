import { describe, expect, it } from 'vitest';
import type { Preset } from '../backend/bindings';
import { ChatState } from '../features/chat/store.svelte';
import { NOTHING, PresetsState } from '../features/options/presets.svelte';
import { FakeBackend } from '../test/fake-backend';
import { OwnOptions } from './conversation-options.svelte';

const preset = (id: string, name: string, temperature: number | null = null): Preset => ({
  id,
  name,
  options: { ...NOTHING.options, temperature },
  compression: null,
});

describe('OwnOptions', () => {
  it('keeps what a chat without a message is given until its first one', async () => {
    const backend = new FakeBackend();
    backend.on('presets_list', () => [preset('1', 'Cool', 0.1)]);
    const presets = new PresetsState(backend);
    await presets.load();
    const own = new OwnOptions(backend, new ChatState(backend), presets);
    expect(own.says).toBe(false);
    await own.begin(presets.list[0] ?? null);
    expect(own.preset?.name).toBe('Cool');
    expect(own.changed).toBe(false);
    await own.set('temperature', 0.5);
    expect(own.changed).toBe(true);
    expect(own.fresh.options.temperature).toBe(0.5);
    expect(backend.called).toEqual(['presets_list']);
    await own.begin(null);
    expect(own.says).toBe(false);
  });
});
