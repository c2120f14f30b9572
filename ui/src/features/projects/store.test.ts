import { beforeEach, describe, expect, it } from 'vitest';
import type { Project } from '../../backend/bindings';
import { NO_OPTIONS } from '../../test/fixtures';
import { FakeBackend } from '../../test/fake-backend';
import { ProjectsState } from './store.svelte';

const project = (over: Partial<Project>): Project => ({
  folder: 'f',
  name: 'House',
  instructions: 'Be brief.',
  preset: null,
  model: null,
  memory: null,
  files: [],
  options: NO_OPTIONS,
  compression: null,
  ...over,
});

describe('projects', () => {
  let backend: FakeBackend;
  let state: ProjectsState;

  beforeEach(() => {
    backend = new FakeBackend();
    state = new ProjectsState(backend);
  });

  it('tell what a new chat begins with', async () => {
    backend.on('project_get', ({ id }) => (id === 'g' ? null : project({})));
    const begun = state.start('f');
    expect([state.folder, state.loading, state.starting]).toEqual(['f', true, null]);
    expect((await begun)?.instructions).toBe('Be brief.');
    expect([state.loading, state.starting?.name]).toEqual([false, 'House']);
    expect(await state.start('g')).toBeNull();
    expect([state.folder, state.loading]).toEqual(['g', false]);
    await state.start(null);
    expect([state.folder, state.loading, state.starting]).toEqual([null, false, null]);
    expect(backend.called.length).toBe(2);
  });

  it('give nothing to a chat that was begun elsewhere meanwhile', async () => {
    backend.on('project_get', () => project({}));
    const [first] = await Promise.all([state.start('f'), state.start(null)]);
    expect([first, state.starting, state.folder]).toEqual([null, null, null]);
  });

  it('of a folder around are not edited', async () => {
    backend.on('project_get', () => project({ folder: 'outer' }));
    await state.edit('inner');
    expect([state.editing, state.edited]).toEqual(['inner', null]);
    state.close();
    expect(state.editing).toBeNull();
  });

  it('show what was stored, also where a chat is about to begin', async () => {
    backend.on('project_get', () => project({}));
    backend.on('project_set', ({ folder, instructions = '' }) => project({ folder, instructions }));
    backend.on('project_file_add_path', ({ folder }) =>
      project({
        folder,
        files: [{ id: '1', name: 'a.md', kind: 'markdown', bytes: 1, findings: [] }],
      }),
    );
    await state.start('f');
    await state.edit('f');
    await state.save({ folder: 'f', instructions: 'Now this.' });
    expect([state.edited?.instructions, state.starting?.instructions]).toEqual([
      'Now this.',
      'Now this.',
    ]);
    const added = state.addPath('f', 'C:\\notes\\a.md');
    expect(state.reading).toBe('a.md');
    await added;
    expect([state.reading, state.edited?.files.length]).toEqual([null, 1]);
    backend.on('project_remove', () => null);
    await state.remove('f');
    expect([state.edited, state.starting]).toEqual([null, null]);
  });

  it('say what went wrong, and read no longer', async () => {
    backend.on('project_file_add_path', () => {
      throw new Error('too large');
    });
    await expect(state.addPath('f', '/a/b.txt')).rejects.toThrow('too large');
    expect(state.reading).toBeNull();
  });
});
