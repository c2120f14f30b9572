import { describe, expect, it } from 'vitest';
import type { ModelEntry } from '../../backend/bindings';
import { groupModels } from './model-summary';
import { ModelsState } from './store.svelte';
import { FakeBackend } from '../../test/fake-backend';

const entry = (id: string, state: ModelEntry['state']): ModelEntry => ({ id, state }) as ModelEntry;

describe('groups of models', () => {
  it('puts those in memory first', () => {
    const groups = groupModels([
      entry('a', { state: 'unloaded' }),
      entry('b', { state: 'ready' }),
      entry('c', { state: 'loading', fraction: 0.5 }),
    ]);
    expect(groups.map((it) => [it.name, it.models.map((one) => one.id)])).toEqual([
      ['Loaded', ['b', 'c']],
      ['On this computer', ['a']],
    ]);
    expect(groupModels([])).toEqual([]);
  });
});

it('chats only with models that answer', async () => {
  const backend = new FakeBackend();
  const models = new ModelsState(backend);
  const found = { id: 'finds', embeds: true } as ModelEntry;
  const drafts = { id: 'drafts', only_drafts: true } as ModelEntry;
  backend.on('models_list', () => [entry('answers', { state: 'ready' }), found, drafts]);
  await models.load();
  expect(models.answering.map((it) => it.id)).toEqual(['answers']);
  expect(models.find('finds')).toEqual(found);
});
