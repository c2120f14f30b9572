import { describe, expect, it } from 'vitest';
import type { Preset } from '../../backend/bindings';
import { NOTHING, PresetsState, same } from './presets.svelte';
import { OwnOptions } from '../../app/conversation-options.svelte';
import { ChatState } from '../chat/store.svelte';
import { FakeBackend } from '../../test/fake-backend';

const preset = (id: string, name: string, temperature: number | null = null): Preset => ({
  id,
  name,
  options: { ...NOTHING.options, temperature },
  compression: null,
});

describe('PresetsState', () => {
  it('keeps them by name and follows what happens elsewhere', async () => {
    const backend = new FakeBackend();
    backend.on('presets_list', () => [preset('1', 'Brief')]);
    const presets = new PresetsState(backend);
    await presets.load();
    presets.apply({ type: 'preset_changed', preset: preset('2', 'Alike') });
    expect(presets.list.map((it) => it.id)).toEqual(['2', '1']);
    presets.apply({ type: 'preset_removed', id: '1' });
    expect(presets.list.map((it) => it.id)).toEqual(['2']);
  });

  it('goes round and round', async () => {
    const backend = new FakeBackend();
    const presets = new PresetsState(backend);
    expect(presets.after(null)).toBe(null);
    backend.on('presets_list', () => [preset('1', 'A'), preset('2', 'B')]);
    await presets.load();
    expect(presets.after(null)?.id).toBe('1');
    expect(presets.after('1')?.id).toBe('2');
    expect(presets.after('2')?.id).toBe('1');
  });
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

  it('compares what is said, not what it began as', () => {
    const other = { ...NOTHING, options: { ...NOTHING.options, preset: 'x' } };
    expect(same(NOTHING, other)).toBe(true);
    expect(same(NOTHING, { ...NOTHING, compression: 'summary' })).toBe(false);
  });
});
