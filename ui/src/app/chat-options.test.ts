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

const NO_SETTINGS = { text: (_: string, fallback: string) => fallback };

describe('ChatOptionsState', () => {
  it('keeps what a chat without a message is given until its first one', async () => {
    const backend = new FakeBackend();
    backend.on('presets_list', () => [preset('1', 'Cool', 0.1)]);
    const presets = new PresetsState(backend);
    await presets.load();
    const own = new ChatOptionsState(backend, new ChatState(backend), presets, NO_SETTINGS);
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
  it('begins a new chat with the default instructions, which are not its own', async () => {
    const backend = new FakeBackend();
    const settings = { text: () => 'Be brief.' };
    const chat = new ChatState(backend);
    const own = new ChatOptionsState(backend, chat, new PresetsState(backend), settings);
    expect(own.systemPrompt).toBe('Be brief.');
    expect(own.isSet).toBe(false);
    await own.setSystemPrompt('Be kind.');
    expect(own.systemPrompt).toBe('Be kind.');
    expect(own.isSet).toBe(true);
    // An empty field means none, and is sent as that.
    await own.setSystemPrompt('');
    expect(own.systemPrompt).toBe('');
    expect(own.unsent.options.system_prompt).toBe('');
    await own.setSystemPrompt('Be brief.');
    expect(own.unsent.options.system_prompt).toBeNull();
  });

  it('switches thinking for the chat alone', async () => {
    const backend = new FakeBackend();
    const settings = { text: () => 'off' };
    const own = new ChatOptionsState(
      backend,
      new ChatState(backend),
      new PresetsState(backend),
      settings,
    );
    await own.setLikeSetting('thinking', 'on');
    expect(own.unsent.options.thinking).toBe('on');
    await own.setLikeSetting('thinking', 'off');
    expect(own.unsent.options.thinking).toBeNull();
    expect(backend.called).toEqual([]);
  });
});
