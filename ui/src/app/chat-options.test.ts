import { describe, expect, it } from 'vitest';
import type { Preset } from '../backend/bindings';
import { ChatState } from '../features/chat/store.svelte';
import { EMPTY_OPTIONS, PresetsState } from '../features/options/presets.svelte';
import { FakeBackend } from '../test/fake-backend';
import { ChatOptionsState } from './chat-options.svelte';

const preset = (id: string, name: string, temperature: number | null = null): Preset => ({
  id,
  name,
  options: { ...EMPTY_OPTIONS.options, temperature },
  compression: null,
});

describe('ChatOptionsState', () => {
  it('keeps what a chat without a message is given until its first one', async () => {
    const backend = new FakeBackend();
    backend.on('presets_list', () => [preset('1', 'Cool', 0.1)]);
    const presets = new PresetsState(backend);
    await presets.load();
    const own = new ChatOptionsState(backend, new ChatState(backend), presets);
    expect(own.isSet).toBe(false);
    await own.applyPreset(presets.list[0] ?? null);
    expect(own.preset?.name).toBe('Cool');
    expect(own.isChanged).toBe(false);
    await own.set('temperature', 0.5);
    expect(own.isChanged).toBe(true);
    expect(own.unsent.options.temperature).toBe(0.5);
    expect(backend.called).toEqual(['presets_list']);
    await own.applyPreset(null);
    expect(own.isSet).toBe(false);
  });
});
