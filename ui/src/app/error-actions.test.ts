// @vitest-environment jsdom
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { Inglenook } from './inglenook.svelte';
import { toButtons, suggestionsAfter, suggestionsFor, type SuggestedAction } from './error-actions';
import { BackendError } from '../backend/backend';
import type { SettingRow, TurnStats } from '../backend/bindings';
import { PANELS } from '../features/settings/sections';
import { FakeBackend } from '../test/fake-backend';
import { NO_OPTIONS, STATS } from '../test/fixtures';

const CRATES = join(import.meta.dirname, '../../../src-tauri/crates');
const RUST = readdirSync(CRATES, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.rs') && !/(^|\/)tests?(\/|\.rs$)/.test(path))
  .map((path) => readFileSync(join(CRATES, path), 'utf8'))
  .join('\n');

const row = (key: string, value: SettingRow['value'] = null): SettingRow =>
  ({ key, section: 'Context & memory', label: `Label of ${key}`, help: '', value }) as SettingRow;

const places = (suggestions: readonly SuggestedAction[]) =>
  suggestions.map((it) => ('key' in it ? it.key : 'name' in it ? it.name : it.to));

async function withSettings(...rows: SettingRow[]): Promise<Inglenook> {
  const backend = new FakeBackend();
  backend.on('settings_list', () => rows);
  const app = new Inglenook(backend);
  await app.settings.load();
  return app;
}

describe('what can be done at once about an error', () => {
  beforeEach(() => sessionStorage.clear());

  it('goes by its code, the nearest first', () => {
    expect(places(suggestionsFor('request.context_full'))).toEqual([
      'compact',
      'larger',
      'new_chat',
    ]);
    expect(places(suggestionsFor('limit.seconds'))).toEqual(['limit_seconds']);
    expect(places(suggestionsFor('kernels.gpu_lost'))).toEqual(['backend']);
    expect(places(suggestionsFor('weights.truncated'))).toEqual(['picker']);
    expect(places(suggestionsFor('worker.killed'))).toEqual(['smaller', 'picker']);
    expect(places(suggestionsFor('worker.crashed'))).toEqual(['picker']);
    expect(places(suggestionsFor('download.no_space'))).toEqual(['space', 'download_place']);
    expect(places(suggestionsFor('tools.unreachable'))).toEqual(['Tools']);
    expect(suggestionsFor('model.built_in')).toEqual([]);
    expect(suggestionsFor('worker.restarted')).toEqual([]);
    expect(suggestionsFor('no.such')).toEqual([]);
  });

  it('knows no code and no place that the application does not', () => {
    const source = readFileSync(join(import.meta.dirname, 'error-actions.ts'), 'utf8');
    const codes = [...source.matchAll(/^ {2}\['([^']+)'/gm)].map((it) => it[1] ?? '');
    expect(codes.length).toBeGreaterThan(50);
    const begins = (code: string) => (/[._]$/.test(code) ? `"${code}` : `"${code}"`);
    expect(codes.filter((code) => !RUST.includes(begins(code)))).toEqual([]);
    const keys = [...source.matchAll(/setting\(\s*'(\w+)'/g)].map((it) => it[1] ?? '');
    expect(keys.length).toBeGreaterThan(15);
    expect(keys.filter((key) => !RUST.includes(`key: "${key}"`))).toEqual([]);
    const names = codes.flatMap((code) => suggestionsFor(code)).filter((it) => it.to === 'section');
    expect(names.filter((it) => !PANELS.some((name) => name === it.name))).toEqual([]);
  });

  it('opens the row of the settings that matters', async () => {
    const app = await withSettings(row('limit_seconds'));
    const [action, ...rest] = toButtons(app, suggestionsFor('limit.seconds'));
    expect(rest).toEqual([]);
    expect(action?.label).toContain('Label of limit_seconds');
    app.ui.picker = true;
    action?.run();
    expect([app.ui.view, app.ui.section, app.ui.setting, app.ui.picker]).toEqual([
      'settings',
      'Context & memory',
      'limit_seconds',
      false,
    ]);
  });

  it('offers nothing that leads where one is, and nothing that is not there', async () => {
    const app = await withSettings();
    expect(toButtons(app, suggestionsFor('limit.seconds'))).toEqual([]);
    // There is no conversation to compact, no answer to regenerate, and none to stop.
    expect(toButtons(app, suggestionsFor('request.context_full')).map((it) => it.testid)).toEqual([
      'step-new_chat',
    ]);
    expect(toButtons(app, suggestionsFor('chat.cannot_continue'))).toEqual([]);
    expect(toButtons(app, suggestionsFor('session.answering'))).toEqual([]);
    const tools = () => toButtons(app, suggestionsFor('tools.gone'));
    expect(tools()).toHaveLength(1);
    tools()[0]?.run();
    expect(tools()).toEqual([]);
  });

  it('leads to the picker from anywhere, and to models that can go', async () => {
    const app = await withSettings();
    app.ui.view = 'models';
    toButtons(app, suggestionsFor('model.removed'))[0]?.run();
    expect([app.ui.view, app.ui.picker]).toEqual(['chat', true]);
    toButtons(app, suggestionsFor('session.disk_full'))[0]?.run();
    expect([app.ui.view, app.ui.modelsTab, app.ui.picker]).toEqual(['models', 'here', false]);
  });

  it('stands in the note at the edge of the window, too', async () => {
    const app = await withSettings(row('offline', true));
    const error = { code: 'network.offline', message: 'Offline.', remedy: '' };
    await app.attempt(() => Promise.reject(new BackendError(error)));
    expect(app.toasts.list[0]?.action?.testid).toBe('step-setting');
    app.toasts.list[0]?.action?.run();
    expect(app.ui.setting).toBe('offline');
    await app.attempt(() => Promise.reject(new BackendError({ ...error, code: 'preset.no_name' })));
    expect(app.toasts.list[1]?.action).toBeUndefined();
  });
});

describe('what can be done after an early end', () => {
  beforeEach(() => sessionStorage.clear());
  const ended = (over: Partial<TurnStats>) => ({ stats: { ...STATS, ...over } });

  it('is where the limit stands that was reached', async () => {
    const app = await withSettings(row('limit_answer_tokens', 900), row('max_tokens', 700));
    const after = (n: number) =>
      places(suggestionsAfter(app, ended({ finish: 'length', generated_tokens: n })));
    expect(after(700)).toEqual(['max_tokens']);
    expect(after(900)).toEqual(['limit_answer_tokens']);
    await app.chatOptions.save({ options: { ...NO_OPTIONS, max_tokens: 500 }, compression: null });
    expect(after(500)).toEqual(['options']);
    expect(after(700)).toEqual(['max_tokens']);
  });

  it('follows why it ended', async () => {
    const app = await withSettings();
    const after = (finish: TurnStats['finish']) => places(suggestionsAfter(app, ended({ finish })));
    expect(after('time_up')).toEqual(['limit_seconds']);
    expect(after('context_full')).toEqual(['compact', 'larger', 'new_chat']);
    expect([after('stop'), after('cancelled'), after('tool_calls')]).toEqual([[], [], []]);
    expect(suggestionsAfter(app, { stats: null })).toEqual([]);
  });
});
