import { describe, expect, it } from 'vitest';
import type { Preset } from '../../backend/bindings';
import { EMPTY_OPTIONS, PresetsState, sameOptions } from './presets.svelte';
import { FakeBackend } from '../../test/fake-backend';

const preset = (id: string, name: string, temperature: number | null = null): Preset => ({
  id,
  name,
  options: { ...EMPTY_OPTIONS.options, temperature },
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

describe('options', () => {
  it('compares what is said, not what it began as', () => {
    const other = { ...EMPTY_OPTIONS, options: { ...EMPTY_OPTIONS.options, preset: 'x' } };
    expect(sameOptions(EMPTY_OPTIONS, other)).toBe(true);
    expect(sameOptions(EMPTY_OPTIONS, { ...EMPTY_OPTIONS, compression: 'summary' })).toBe(false);
  });
});
