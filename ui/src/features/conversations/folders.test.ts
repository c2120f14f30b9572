import { beforeEach, describe, expect, it } from 'vitest';
import type { Folder } from '../../backend/bindings';
import {
  flattenTree,
  folderHeight,
  MAX_FOLDER_LEVELS,
  folderPaths,
  moveTargets,
  buildFolderTree,
  type FolderNode,
} from './folder-tree';
import { FoldersState } from './folders.svelte';
import {
  endDrag,
  draggedFolder,
  hasConversations,
  startDrag,
  startFolderDrag,
} from './drag-and-drop';
import { FakeBackend } from '../../test/fake-backend';

/** `a`, `b in a`, … */
const folders = (text: string): Folder[] =>
  text.split(', ').map((it) => {
    const [id = '', parent = null] = it.split(' in ');
    return { id, name: id.toUpperCase(), parent };
  });

const drawn = (nodes: readonly FolderNode[]): string =>
  nodes
    .map(({ folder, children }) => folder.id + (children.length > 0 ? `(${drawn(children)})` : ''))
    .join(' ');

describe('folders in folders', () => {
  it.each([
    ['a, b', 'a b'],
    ['a, b in a, c in b, d in a', 'a(b(c) d)'],
    ['c in b, b in a, a', 'a(b(c))'],
    // unknown and unreachable parents lose nothing
    ['a in gone, b in a', 'a(b)'],
    ['a in a, b', 'a b'],
    ['a in b, b in a, c in a, d in c', 'a b c d'],
  ])('%s stand as %s', (text, expected) => {
    expect(drawn(buildFolderTree(folders(text)))).toBe(expected);
  });

  it('know their levels and the way to them', () => {
    const tree = buildFolderTree(folders('a, b in a, c in b'));
    expect(flattenTree(tree).map((it) => [it.folder.id, it.level, folderHeight(it)])).toEqual([
      ['a', 1, 3],
      ['b', 2, 2],
      ['c', 3, 1],
    ]);
    expect([...folderPaths(tree)]).toEqual([
      ['a', ['A']],
      ['b', ['A', 'B']],
      ['c', ['A', 'B', 'C']],
    ]);
  });

  it.each([
    ['a', 'x y'],
    ['b', 'x y'],
    ['c', 'a x y'],
    ['x', 'a b c y'],
    ['gone', ''],
  ])('%s may go to %s', (id, expected) => {
    const tree = buildFolderTree(folders('a, b in a, c in b, x, y'));
    const places = moveTargets(id, tree).map((it) => it.folder.id);
    expect(places.join(' ')).toBe(expected);
  });

  it('do not go too deep', () => {
    const text = Array.from({ length: MAX_FOLDER_LEVELS }, (_, at) =>
      at === 0 ? 'l0' : `l${at} in l${at - 1}`,
    );
    const tree = buildFolderTree(folders([...text, 'x', 'y in x'].join(', ')));
    const places = (id: string) => moveTargets(id, tree).map((it) => it.folder.id);
    expect(places('y')).toEqual(text.slice(0, -1).map((_, at) => `l${at}`));
    expect(places('x')).toEqual(text.slice(0, -2).map((_, at) => `l${at}`));
  });
});

describe('the list of folders', () => {
  let backend: FakeBackend;
  let state: FoldersState;

  beforeEach(async () => {
    backend = new FakeBackend();
    backend.on('folders_list', () => folders('a, b in a'));
    state = new FoldersState(backend);
    await state.load();
  });

  it('moves one with all that lies in it', async () => {
    backend.on('folder_move', ({ id, parent }) => ({ id, name: 'B', parent }));
    await state.move('b', null);
    expect(drawn(state.tree)).toBe('a b');
    state.apply({ type: 'folder_changed', folder: { id: 'a', name: 'A', parent: 'b' } });
    expect(drawn(state.tree)).toBe('b(a)');
  });

  it('adds one in another', async () => {
    const asked: unknown[] = [];
    backend.on('folder_add', (args) => {
      asked.push(args);
      return { id: 'c', name: args.name, parent: args.parent ?? null };
    });
    await state.add('C', 'b');
    await state.add('D');
    expect(asked).toEqual([
      { name: 'C', parent: 'b' },
      { name: 'D', parent: null },
    ]);
  });
});

describe('what is carried', () => {
  const event = () => {
    const data = new Map<string, string>();
    const transfer = {
      effectAllowed: 'none',
      setData: (type: string, text: string) => void data.set(type, text),
      getData: (type: string) => data.get(type) ?? '',
      get types() {
        return [...data.keys()];
      },
    };
    return { dataTransfer: transfer } as unknown as DragEvent;
  };

  it('is told apart', () => {
    const chat = event();
    startDrag(chat, ['c']);
    expect([hasConversations(chat), draggedFolder(chat)]).toEqual([true, null]);
    const folder = event();
    startFolderDrag(folder, 'f');
    expect([hasConversations(folder), draggedFolder(folder)]).toEqual([false, 'f']);
    expect(draggedFolder(chat)).toBeNull();
    endDrag();
    expect(draggedFolder(folder)).toBeNull();
  });
});
