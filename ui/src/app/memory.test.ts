// @vitest-environment jsdom
import { flushSync, mount, unmount, type Component } from 'svelte';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Note, NoteArgs } from '../backend/bindings';
import NoteRow from '../features/memory/NoteRow.svelte';
import MemoryField from '../shared/MemoryField.svelte';
import { FakeBackend } from '../test/fake-backend';
import { setApp } from './context';
import { Inglenook } from './inglenook.svelte';

const NOTE: Note = { id: '1', text: 'Metric units.', source: null, created_ms: 1, updated_ms: 1 };

function show<P extends Record<string, unknown>>(app: Inglenook, shown: Component<P>, props: P) {
  const host = ((anchor: never) => {
    setApp(app);
    return shown(anchor, props);
  }) as unknown as Component;
  const mounted = mount(host, { target: document.body, context: new Map() });
  flushSync();
  return mounted;
}

const find = <T extends HTMLElement>(testid: string) =>
  document.querySelector<T>(`[data-testid="${testid}"]`);
const settled = () => new Promise((resolve) => setTimeout(resolve));

describe('a note on its page', () => {
  let backend: FakeBackend;
  let app: Inglenook;
  let saved: NoteArgs[];

  beforeEach(async () => {
    backend = new FakeBackend();
    saved = [];
    backend.on('notes_list', () => [NOTE]);
    backend.on('note_save', (args) => {
      saved.push(args);
      return { ...NOTE, id: args.id ?? '2', text: args.text };
    });
    backend.on('note_remove', () => null);
    app = new Inglenook(backend);
    await app.memory.load();
  });

  it('is changed in its place', async () => {
    const row = show(app, NoteRow, { note: NOTE });
    find('note-change')?.click();
    flushSync();
    const field = find<HTMLTextAreaElement>('note-edit');
    expect(field?.value).toBe('Metric units.');
    if (field) field.value = 'SI units.';
    field?.dispatchEvent(new Event('input', { bubbles: true }));
    flushSync();
    find('note-edit-save')?.click();
    await settled();
    flushSync();
    expect(saved).toEqual([{ id: '1', text: 'SI units.', source: null }]);
    expect(find('note-edit')).toBeNull();
    void unmount(row);
  });

  it('is deleted, and comes back', async () => {
    const row = show(app, NoteRow, { note: NOTE });
    find('note-remove')?.click();
    await settled();
    expect(app.memory.list).toEqual([]);
    app.toasts.list.at(-1)?.action?.run();
    await settled();
    expect(app.memory.list.map((it) => it.text)).toEqual(['Metric units.']);
    void unmount(row);
  });

  it.each([
    [null, 'default'],
    [true, 'on'],
    [false, 'off'],
  ])('is used as a chat says: %s', (value, name) => {
    const chosen: (boolean | null)[] = [];
    const onset = (it: boolean | null) => void chosen.push(it);
    const field = show(app, MemoryField, { value, testid: 'field', onset });
    const select = find<HTMLSelectElement>('field');
    expect(select?.value).toBe(name);
    for (const other of ['default', 'on', 'off']) {
      if (select) select.value = other;
      select?.dispatchEvent(new Event('change', { bubbles: true }));
    }
    expect(chosen).toEqual([null, true, false]);
    void unmount(field);
  });
});
