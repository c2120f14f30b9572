import { describe, expect, it } from 'vitest';
import { FoldersState } from '../features/conversations/folders.svelte';
import { TrashState } from '../features/trash/store.svelte';
import { FakeBackend } from '../test/fake-backend';
import { folder, summary } from '../test/fixtures';

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
