import { beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeBackend } from '../../test/fake-backend';
import { HelpState } from './store.svelte';

const article = (id: string) => ({ id, title: id, text: '', related: [], targets: [] });

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
});
