import { describe, expect, it, vi } from 'vitest';
import type { SearchResult } from '../../backend/bindings';
import { FakeBackend } from '../../test/fake-backend';
import { SearchState } from './search.svelte';

describe('a search', () => {
  it('drops answers to older questions', async () => {
    vi.useFakeTimers();
    const backend = new FakeBackend();
    const found = (query: string): SearchResult => ({
      titles: [{ conversation: 'c', title: query }],
      messages: [],
    });
    backend.on('search', ({ query }) => found(query));
    const search = new SearchState(backend);
    search.setQuery('fo');
    search.setQuery('fox');
    await vi.advanceTimersByTimeAsync(500);
    expect(backend.called).toEqual(['search']);
    expect(search.result?.titles[0]?.title).toBe('fox');
    search.setQuery('');
    expect(search.result).toBeNull();
    vi.useRealTimers();
  });
});
