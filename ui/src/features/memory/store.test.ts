import { beforeEach, describe, expect, it } from 'vitest';
import type { Note } from '../../backend/bindings';
import { FakeBackend } from '../../test/fake-backend';
import { MemoryState } from './store.svelte';

const note = (id: string, text: string): Note => ({
  id,
  text,
  source: null,
  created_ms: 1,
  updated_ms: 1,
});

describe('memory', () => {
  let backend: FakeBackend;
  let state: MemoryState;
  const texts = () => state.list.map((it) => it.text).join(', ');

  beforeEach(async () => {
    backend = new FakeBackend();
    backend.on('notes_list', () => [note('1', 'a'), note('2', 'b')]);
    backend.on('note_save', ({ id, text, source }) => ({
      ...note(id ?? '3', text),
      source: source ?? null,
    }));
    backend.on('note_remove', () => null);
    state = new MemoryState(backend);
    await state.load();
  });

  it('adds, changes and deletes notes in their order', async () => {
    await state.save('c', null, 'chat');
    expect([texts(), state.list.at(-1)?.source]).toEqual(['a, b, c', 'chat']);
    await state.save('A', '1');
    expect(texts()).toBe('A, b, c');
    await state.remove('2');
    expect(texts()).toBe('A, c');
    state.apply({ type: 'notes_changed', notes: [note('9', 'z')] });
    expect(texts()).toBe('z');
  });

  it('offers a text and keeps nothing by itself', () => {
    state.offer(`  ${'x'.repeat(2000)}  `, 'chat');
    expect([state.offered?.text.length, state.offered?.source]).toEqual([1000, 'chat']);
    expect(backend.called).toEqual(['notes_list']);
  });

  it('counts for a model; the last question counts', async () => {
    const parts = { before: 9, system: 0, tools: 0, files: 0 };
    backend.on('context_parts', ({ model }) =>
      model === 'm' ? { ...parts, memory: { tokens: 9, text: '- a' } } : parts,
    );
    await Promise.all([state.measure(null), state.measure('m')]);
    expect(state.share?.tokens).toBe(9);
    backend.on('context_parts', () => {
      throw new Error('no model');
    });
    await state.measure('m');
    expect(state.share).toBeNull();
  });
});
