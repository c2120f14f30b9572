import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { ConversationSummary, Folder, SearchResult } from '../backend/bindings';
import { ChatState } from '../features/chat/store.svelte';
import { FoldersState } from '../features/conversations/folders.svelte';
import { arrange } from '../features/conversations/date-groups';
import { SearchState } from '../features/conversations/search.svelte';
import { TrashState } from '../features/trash/store.svelte';
import { FakeBackend } from '../test/fake-backend';
import { STATS, conversation, message } from '../test/fixtures';

const summary = (id: string, over: Partial<ConversationSummary> = {}): ConversationSummary => ({
  ...conversation(id, null, []).summary,
  ...over,
});
const folder = (id: string): Folder => ({ id, name: id, parent: null });

describe('the list', () => {
  it('has each conversation in one place', () => {
    const list = [
      summary('a', { activity: 1 }),
      summary('b', { activity: 2, pinned: true, folder: 'f' }),
      summary('c', { activity: 3, folder: 'f' }),
      summary('d', { activity: 4, folder: 'gone' }),
      summary('e', { activity: 5, folder: 'f' }),
    ];
    const shown = arrange(list, [folder('f'), folder('g')], 2);
    const ids = (of: readonly ConversationSummary[]) => of.map((it) => it.id).join('');
    expect(ids(shown.pinned)).toBe('b');
    expect([...shown.inside].map(([id, list]) => [id, ids(list)])).toEqual([
      ['f', 'ec'],
      ['g', ''],
    ]);
    expect(shown.groups.map((group) => ids(group.conversations))).toEqual(['da']);
  });
});

describe('the branches', () => {
  let backend: FakeBackend;
  let chat: ChatState;
  let messages = [message({ id: 'q', role: 'user', text: 'Q', versions: 2 })];

  beforeEach(async () => {
    backend = new FakeBackend();
    backend.on('conversation_get', () => conversation('c', null, messages));
    chat = new ChatState(backend);
    await chat.open('c');
  });

  it('are chosen by the version of a message', async () => {
    const asked: unknown[] = [];
    backend.on('message_choose', (args) => {
      asked.push(args);
      messages = [message({ id: 'q2', role: 'user', text: 'Q, otherwise', versions: 2 })];
      return summary('c');
    });
    await chat.choose('q', 2);
    expect(asked).toEqual([{ message: 'q', version: 2 }]);
    expect(chat.shown[0]?.text).toBe('Q, otherwise');
  });

  it('go and come back', async () => {
    backend.on('message_delete', () => {
      messages = [];
      return summary('c');
    });
    await chat.remove('q');
    expect(chat.shown).toEqual([]);
    backend.on('message_restore', () => {
      messages = [message({ id: 'q', role: 'user', text: 'Q' })];
      return summary('c');
    });
    await chat.restore('q');
    expect(chat.shown.length).toBe(1);
  });

  it('keep what an answer has while it goes on', async () => {
    const answer = message({ id: 'a', text: 'Once upon', state: 'streaming' });
    backend.on('message_continue', () => ({
      turn: 't',
      conversation: 'c',
      user_message: 'q',
      assistant_message: 'a',
    }));
    backend.on('conversation_get', () => conversation('c', 't', [answer]));
    await chat.goOn('a');
    expect(chat.shown[0]?.text).toBe('Once upon');
    backend.emit('t', [{ type: 'text', text: 'Once upon', ids: [1] }]);
    backend.emit('t', [{ type: 'text', text: ' a time', ids: [2] }]);
    expect(chat.shown[0]?.text).toBe('Once upon a time');
    backend.on('conversation_get', () =>
      conversation('c', null, [
        { ...answer, text: 'Once upon a time', state: 'complete', stats: STATS },
      ]),
    );
    backend.emit('t', [{ type: 'done', stats: STATS }]);
    backend.end('t');
    await vi.waitFor(() => expect(chat.answering).toBe(false));
  });
});

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
    search.want('fo');
    search.want('fox');
    await vi.advanceTimersByTimeAsync(500);
    expect(backend.called).toEqual(['search']);
    expect(search.result?.titles[0]?.title).toBe('fox');
    search.want('');
    expect(search.result).toBeNull();
    vi.useRealTimers();
  });
});

describe('folders and the trash', () => {
  it('follow what the application says', async () => {
    const backend = new FakeBackend();
    backend.on('folders_list', () => [folder('b')]);
    backend.on('trash_list', () => [summary('x', { deleted_ms: 1 })]);
    const folders = new FoldersState(backend);
    const trash = new TrashState(backend);
    await folders.load();
    await trash.load();
    folders.apply({ type: 'folder_changed', folder: folder('a') });
    expect(folders.list.map((it) => it.id)).toEqual(['a', 'b']);
    folders.apply({ type: 'folder_removed', id: 'b' });
    expect(folders.list.map((it) => it.id)).toEqual(['a']);
    trash.apply({ type: 'conversation_changed', conversation: summary('x') });
    expect(trash.list).toEqual([]);
  });
});
