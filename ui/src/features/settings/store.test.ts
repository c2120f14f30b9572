import { describe, expect, it } from 'vitest';
import { BackendError } from '../../backend/backend';
import type { SettingRow } from '../../backend/bindings';
import { isDefault } from '../../shared/setting-value';
import { changedRows, findPlaces, findRows } from './setting-rows';
import { groupRows, sectionsOf } from './sections';
import { SettingsState } from './store.svelte';
import { FakeBackend } from '../../test/fake-backend';

const row = (key: string, over: Partial<SettingRow> = {}): SettingRow => ({
  key,
  section: 'Answers',
  group: 'Drawing',
  at_load: false,
  label: key,
  help: '',
  kind: { kind: 'toggle' },
  default: false,
  value: false,
  ...over,
});

const THEME = row('theme', {
  section: 'Look',
  help: 'Light or dark.',
  kind: { kind: 'choice', options: [{ value: 'dark', label: 'Ember' }] },
});

describe('rows', () => {
  it('lists known sections in their order, then those that only rows name, once', () => {
    const rows = [
      row('a'),
      row('x', { section: 'Chat' }),
      row('b'),
      row('y', { section: 'General' }),
    ];
    const names = sectionsOf(rows, ['About']).map((it) => it.name);
    expect(names).toEqual(['General', 'Chat', 'About', 'Answers']);
  });

  it('groups rows that belong together', () => {
    const groups = groupRows([row('a'), row('b', { group: 'Other' }), row('c')]);
    expect(groups.map((it) => [it.name, it.rows.map((one) => one.key)])).toEqual([
      ['Drawing', ['a', 'c']],
      ['Other', ['b']],
    ]);
  });

  it('knows which rows were changed', () => {
    const rows = [
      row('a'),
      row('b', { value: true }),
      row('c', { kind: { kind: 'read_only' }, value: 1 }),
    ];
    expect(changedRows(rows).map((it) => it.key)).toEqual(['b']);
  });

  it.each([
    ['dark', ['theme']],
    ['EMBER', ['theme']],
    ['look light', ['theme']],
    ['answers', ['a']],
    ['nothing', []],
    ['', ['a', 'theme']],
  ])('finds %s', (query, keys) => {
    expect(findRows([row('a'), THEME], query).map((it) => it.key)).toEqual(keys);
  });

  it.each([
    ['font', ['text_size', 'zoom']],
    ['GPU', ['backend']],
    ['proxy', ['hub', 'offline', 'proxy']],
    ['night mode', ['theme']],
    ['memory', ['context']],
  ])('finds %s by another word', (query, keys) => {
    const all = ['text_size', 'zoom', 'backend', 'hub', 'offline', 'proxy', 'theme', 'context'];
    expect(
      findRows(
        all.map((key) => row(key)),
        query,
      ).map((it) => it.key),
    ).toEqual(keys);
  });

  it.each([
    ['backup', ['backup', 'restore']],
    ['system prompt', ['chat_options']],
    ['MCP', ['tool_servers']],
    ['ollama', ['providers']],
    ['chatgpt', ['import']],
    ['nothing at all', []],
  ])('finds the panel for %s', (query, keys) => {
    expect(findPlaces(query).map((it) => it.key)).toEqual(keys);
  });

  it('knows a default by value', () => {
    expect(isDefault(row('a', { default: null, value: null }))).toBe(true);
    expect(isDefault(row('a', { default: 1, value: 2 }))).toBe(false);
  });
});

describe('SettingsState', () => {
  it('shows what holds, and why a value was refused', async () => {
    const backend = new FakeBackend();
    backend.on('settings_list', () => [row('a'), THEME]);
    backend.on('settings_set', ({ key, value }) => {
      if (value === 'bad') throw new BackendError({ code: 'x', message: 'No.', remedy: '' });
      return row(key, { value });
    });
    const settings = new SettingsState(backend);
    await settings.load();
    await settings.set('a', true);
    expect(settings.rows[0]?.value).toBe(true);
    await settings.set('a', 'bad');
    expect(settings.rows[0]?.value).toBe(true);
    expect(settings.errors.a?.message).toBe('No.');
    await settings.set('a', false);
    expect(settings.errors.a).toBeUndefined();
  });

  it('follows changes made elsewhere', async () => {
    const backend = new FakeBackend();
    backend.on('settings_list', () => [row('a')]);
    const settings = new SettingsState(backend);
    await settings.load();
    settings.apply({ type: 'setting_changed', row: row('a', { value: true }) });
    expect(settings.rows[0]?.value).toBe(true);
  });
});
