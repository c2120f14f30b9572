import { beforeEach, afterEach, describe, expect, it, vi } from 'vitest';
import { BackendError } from '../../backend/backend';
import type { HubModel, ModelFit, Offer } from '../../backend/bindings';
import { groupModels } from './model-summary';
import { HubState } from './hub.svelte';
import { FakeBackend } from '../../test/fake-backend';

const model = (repository: string): HubModel => ({
  repository,
  format: 'gguf',
  architecture: 'llama',
  parameters: 1e9,
  context_length: 8192,
  licence: null,
  languages: [],
  modality: 'text',
  downloads: null,
  likes: null,
  updated_ms: null,
  gated: false,
  url: '',
  runs: true,
  offer: null,
});

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('HubState', () => {
  it('knows where the token is and gives one or none', async () => {
    const backend = new FakeBackend();
    const given: string[] = [];
    backend.on('hub_token', () => ({ place: null, keeps: 'keychain' }));
    backend.on('hub_token_set', ({ token }) => {
      given.push(token);
      return { place: token === '' ? null : 'keychain', keeps: 'keychain' };
    });
    const hub = new HubState(backend);
    await hub.loadToken();
    await hub.loadToken();
    expect(backend.called).toEqual(['hub_token']);
    await hub.setToken('hf_x');
    expect(hub.token?.place).toBe('keychain');
    await hub.setToken('');
    expect([hub.token?.place, given]).toEqual([null, ['hf_x', '']]);
  });

  it('asks nobody before it is looked at, then once', async () => {
    const backend = new FakeBackend();
    backend.on('hub_search', () => ({ models: [model('a/b')], next: 'p2', offline: null }));
    backend.on('model_recommend', () => null);
    const hub = new HubState(backend);
    expect(backend.called).toEqual([]);
    hub.loadOnce();
    hub.loadOnce();
    await vi.runAllTimersAsync();
    expect(backend.called).toEqual(['hub_search', 'model_recommend', 'catalog_fits', 'model_fit']);
    expect(hub.models).toHaveLength(1);
  });

  it('knows size and fit of every row without asking for its files', async () => {
    const backend = new FakeBackend();
    const fitOf = (bytes: number) => ({ verdict: 'runs_well', tok_s: 1e10 / bytes }) as ModelFit;
    const offer = { id: 'known', capabilities: [] } as unknown as Offer;
    const models = [
      { ...model('a/known'), offer },
      model('a/b'),
      { ...model('c/d'), parameters: null },
    ];
    backend.on('hub_search', () => ({ models, next: null, offline: null }));
    backend.on('model_recommend', () => null);
    backend.on('catalog_fits', () => [{ id: 'known', facts: { bytes: 2e9 }, fit: fitOf(2e9) }]);
    backend.on('model_fit', ({ facts }) => fitOf(facts?.bytes ?? 0));
    const hub = new HubState(backend);
    hub.loadOnce();
    await vi.runAllTimersAsync();
    expect(backend.called).not.toContain('hub_files');
    expect(
      hub.entries.map((it) => it.figures && [it.figures.bytes, it.figures.isEstimate]),
    ).toEqual([[2e9, false], [0.6e9, true], null]);
    hub.sortBy('fastest');
    expect(hub.entries.map((it) => it.model.repository)).toEqual(['a/b', 'a/known', 'c/d']);
    hub.filter = { ...hub.filter, fits: true };
    expect(hub.entries).toHaveLength(2);
    expect(backend.called.filter((it) => it === 'hub_search')).toHaveLength(1);
  });

  it('keeps the place of the recommendation while it is computed, and asks once at a time', async () => {
    const backend = new FakeBackend();
    backend.on('model_recommend', () => null);
    const hub = new HubState(backend);
    const asked = [hub.recommend(), hub.recommend()];
    expect(hub.isRecommending).toBe(true);
    await Promise.all(asked);
    expect([hub.isRecommending, hub.recommendation]).toEqual([false, null]);
    expect(backend.called).toEqual(['model_recommend']);
  });

  it('asks a moment after the last key, and keeps the answer to the last question', async () => {
    const backend = new FakeBackend();
    const asked: string[] = [];
    backend.on('hub_search', ({ query }) => {
      asked.push(query);
      return { models: [model(`x/${query}`)], next: null, offline: null };
    });
    const hub = new HubState(backend);
    hub.search('l');
    hub.search('ll');
    hub.search('llama');
    await vi.runAllTimersAsync();
    expect(asked).toEqual(['llama']);
    expect(hub.models[0]?.repository).toBe('x/llama');
  });

  it('adds the page that comes after', async () => {
    const backend = new FakeBackend();
    backend.on('hub_search', ({ after }) =>
      after === null || after === undefined
        ? { models: [model('a/1')], next: 'p2', offline: null }
        : { models: [model('a/2')], next: null, offline: null },
    );
    const hub = new HubState(backend);
    await hub.retry();
    await hub.loadMore();
    await hub.loadMore();
    expect(hub.models.map((it) => it.repository)).toEqual(['a/1', 'a/2']);
    expect(backend.called.filter((it) => it === 'hub_search')).toHaveLength(2);
  });

  it('says why nothing came, and tries again', async () => {
    const backend = new FakeBackend();
    let broken = true;
    backend.on('hub_search', () => {
      if (broken) throw new BackendError({ code: 'hub.x', message: 'No.', remedy: '' });
      return { models: [], next: null, offline: null };
    });
    const hub = new HubState(backend);
    await hub.retry();
    expect(hub.error?.message).toBe('No.');
    broken = false;
    await hub.retry();
    expect(hub.error).toBe(null);
  });
});

describe('groups of models', () => {
  it('puts those in memory first and those elsewhere last', () => {
    const entry = (id: string, source: 'file' | 'remote', state: 'ready' | 'unloaded') =>
      ({ id, source, state: { state } }) as never;
    const groups = groupModels([
      entry('a', 'remote', 'unloaded'),
      entry('b', 'file', 'unloaded'),
      entry('c', 'file', 'ready'),
    ]);
    expect(groups.map((it) => [it.name, it.models.map((one) => one.id)])).toEqual([
      ['Loaded', ['c']],
      ['On this computer', ['b']],
      ['Other servers', ['a']],
    ]);
  });
});
