import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { HelpArticle } from '../../backend/bindings';
import { FakeBackend } from '../../test/fake-backend';
import { HelpState } from './store.svelte';

const article = (id: string, more: Partial<HelpArticle> = {}): HelpArticle => ({
  id,
  title: id,
  text: '',
  related: [],
  targets: [],
  errors: [],
  settings: [],
  ...more,
});

describe('help', () => {
  let backend: FakeBackend;
  let help: HelpState;

  beforeEach(async () => {
    vi.useFakeTimers();
    backend = new FakeBackend();
    backend.on('help_topics', () => [
      { heading: 'Chats', articles: [article('print-a-chat'), article('new-chat')] },
    ]);
    help = new HelpState(backend);
    await help.load();
  });

  it('loads the articles once per language', async () => {
    await help.load();
    expect(backend.called).toEqual(['help_topics']);
    expect(help.articles.map((it) => it.id)).toEqual(['print-a-chat', 'new-chat']);
  });

  it('shows what the search finds, best first, and leaves out what does not exist', async () => {
    backend.on('help_search', () => ['new-chat', 'gone', 'print-a-chat']);
    help.show('print-a-chat');
    help.setQuery('start over');
    await vi.runAllTimersAsync();
    expect(help.open).toBeNull();
    expect(help.found?.map((it) => it.id)).toEqual(['new-chat', 'print-a-chat']);
    help.setQuery('  ');
    expect(help.found).toBeNull();
  });

  it('knows which article explains an error or a setting', async () => {
    backend.on('help_topics', () => [
      {
        heading: 'Trouble',
        articles: [
          article('any-download', { errors: ['download.'], settings: ['hub'] }),
          article('full-disk', { errors: ['download.no_space'] }),
          article('mirror', { targets: [{ kind: 'setting', key: 'hub' }] }),
        ],
      },
    ]);
    const fresh = new HelpState(backend);
    await fresh.load();
    expect(fresh.ofError('download.no_space')?.id).toBe('full-disk');
    expect(fresh.ofError('download.broken')?.id).toBe('any-download');
    expect(fresh.ofError('model.memory')).toBeUndefined();
    expect(fresh.ofSetting('hub')?.id).toBe('mirror');
    expect(fresh.ofSetting('theme')).toBeUndefined();
  });
});
