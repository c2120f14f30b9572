// @vitest-environment jsdom
import { flushSync, mount, unmount, type Component } from 'svelte';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Project, SendArgs } from '../backend/bindings';
import ProjectFiles from '../features/projects/ProjectFiles.svelte';
import ProjectNote from '../features/projects/ProjectNote.svelte';
import { FakeBackend } from '../test/fake-backend';
import { NO_OPTIONS } from '../test/fixtures';
import { setApp } from './context';
import { Inglenook } from './inglenook.svelte';

const PROJECT: Project = {
  folder: 'f',
  name: 'House',
  instructions: 'Be brief.',
  preset: null,
  model: 'm2',
  memory: null,
  files: [{ id: '1', name: 'stoves.md', kind: 'markdown', bytes: 2048, findings: [] }],
  options: { ...NO_OPTIONS, system_prompt: 'Be brief.', project: 'f' },
  compression: 'off',
};

/** Shows a component of `app`. */
function show<P extends Record<string, unknown>>(app: Inglenook, shown: Component<P>, props: P) {
  const host = ((anchor: never) => {
    setApp(app);
    return shown(anchor, props);
  }) as unknown as Component;
  const mounted = mount(host, { target: document.body, context: new Map() });
  flushSync();
  return mounted;
}

const find = (testid: string) => document.querySelector<HTMLElement>(`[data-testid="${testid}"]`);

describe('a chat that begins in a project', () => {
  let backend: FakeBackend;
  let app: Inglenook;
  let sent: SendArgs[];

  beforeEach(async () => {
    backend = new FakeBackend();
    app = new Inglenook(backend);
    sent = [];
    backend.on('folders_list', () => [
      { id: 'f', name: 'House', parent: null, is_project: true },
      { id: 'g', name: 'Loose', parent: null },
    ]);
    backend.on('project_get', ({ id }) => (id === 'f' ? PROJECT : null));
    backend.on('send', (args) => {
      sent.push(args);
      throw new Error('refused');
    });
    await app.folders.load();
  });

  const settled = () => new Promise((resolve) => setTimeout(resolve));

  it('goes with what it says, which can be changed before', async () => {
    app.newChat('f');
    await settled();
    expect(app.chatOptions.systemPrompt).toBe('Be brief.');
    await app.chatOptions.set('temperature', 0.5);
    await app.send('Hello');
    expect(sent[0]).toMatchObject({
      folder: 'f',
      compression: 'off',
      options: { system_prompt: 'Be brief.', project: 'f', temperature: 0.5 },
    });
  });

  it('leaves it to the application while it is not known', async () => {
    app.newChat('f');
    await app.send('Hello');
    expect(sent[0]).toMatchObject({ folder: 'f', model: null });
    expect(sent[0]?.options).toBeUndefined();
  });

  it('ends with another chat', async () => {
    app.newChat('f');
    await settled();
    app.newChat();
    await settled();
    await app.send('Hello');
    expect(sent[0]?.folder).toBeNull();
    expect(sent[0]?.options?.project).toBeNull();
  });

  it('says so', async () => {
    app.newChat('f');
    await settled();
    const note = show(app, ProjectNote, {});
    expect(find('project-note')?.textContent).toMatch(/New chat in “House”.*Instructions.*1 file/s);
    app.newChat('g');
    await settled();
    flushSync();
    expect(find('project-note')?.textContent).toContain('“Loose”');
    expect(find('project-open')).toBeNull();
    app.newChat();
    flushSync();
    expect(find('project-note')).toBeNull();
    void unmount(note);
  });

  it('has files that are listed and removed one by one', async () => {
    await app.projects.edit('f');
    const files = show(app, ProjectFiles, { folder: 'f', save: () => Promise.resolve() });
    expect(find('project-file')?.textContent).toContain('stoves.md');
    const removed: string[] = [];
    backend.on('project_file_remove', ({ id }) => {
      removed.push(id);
      return { ...PROJECT, files: [] };
    });
    find('project-file-remove')?.click();
    await settled();
    flushSync();
    expect([removed, find('project-file')]).toEqual([['1'], null]);
    void unmount(files);
  });
});
