// @vitest-environment jsdom
import { beforeEach, describe, expect, it } from 'vitest';
import { openDeepLink } from './deep-links';
import { Inglenook } from './inglenook.svelte';
import type { ModelEntry, SettingRow } from '../backend/bindings';
import { FakeBackend } from '../test/fake-backend';

const model = (id: string, path: string) => ({ id, path }) as ModelEntry;

describe('what the desktop asks for', () => {
  beforeEach(() => sessionStorage.clear());

  it('puts the text of a link below what was typed, and sends nothing', () => {
    const backend = new FakeBackend();
    const app = new Inglenook(backend);
    app.ui.view = 'settings';
    openDeepLink(app, { type: 'new_chat', text: 'one' });
    expect(app.ui.view).toBe('chat');
    expect(app.drafts.get(null)).toBe('one');
    openDeepLink(app, { type: 'new_chat', text: '' });
    openDeepLink(app, { type: 'new_chat', text: 'two' });
    expect(app.drafts.get(null)).toBe('one\n\ntwo');
    expect(backend.called).not.toContain('send');
  });

  it('offers a model that is new and talks to one that is there', async () => {
    const backend = new FakeBackend();
    const app = new Inglenook(backend);
    backend.on('models_list', () => [model('m1', '/models/known.gguf')]);
    backend.on('settings_set', ({ key, value }) => ({ key, value }) as SettingRow);
    await app.models.load();
    openDeepLink(app, { type: 'model', path: '/models/a.gguf' });
    openDeepLink(app, { type: 'model', path: '/models/b.gguf' });
    expect(app.ui.pendingImports).toEqual(['/models/a.gguf', '/models/b.gguf']);
    openDeepLink(app, { type: 'model', path: '/models/known.gguf' });
    expect(app.ui.pendingImports).toHaveLength(2);
    expect(app.model?.id).toBe('m1');
  });

  it('looks for a model where models are fetched', () => {
    const app = new Inglenook(new FakeBackend());
    openDeepLink(app, { type: 'find_model', query: 'owner/name' });
    expect([app.ui.view, app.ui.modelsTab, app.hub.query]).toEqual([
      'models',
      'discover',
      'owner/name',
    ]);
  });
});
