/** The tree of folders. */
import type { Folder } from '../../backend/bindings';

/** Maximum nesting. The application enforces the same limit. */
export const MAX_FOLDER_LEVELS = 5;

export interface FolderNode {
  readonly folder: Folder;
  /** Depth, from 1 for a top-level folder. */
  readonly level: number;
  readonly children: readonly FolderNode[];
}

/** Ids of folders in the order in which the sidebar shows their conversations: those inside a folder come first. */
export const folderOrder = (nodes: readonly FolderNode[]): string[] =>
  nodes.flatMap(({ folder, children }) => [...folderOrder(children), folder.id]);

/** Builds the tree in list order. Folders with an unknown parent, or in a cycle, become top-level. */
export function buildFolderTree(folders: readonly Folder[]): FolderNode[] {
  const known = new Map(folders.map((folder) => [folder.id, folder]));
  const parentOf = ({ parent }: Folder) => (parent === null ? undefined : known.get(parent));
  const isOutside = (folder: Folder): boolean => {
    const seen = new Set<string>();
    let at = folder;
    for (let next = parentOf(at); next; next = parentOf(at)) {
      if (seen.has(at.id)) return true;
      seen.add(at.id);
      at = next;
    }
    return at === folder;
  };
  const outside = folders.filter(isOutside);
  const grow = (list: readonly Folder[], level: number): FolderNode[] =>
    list.map((folder) => ({
      folder,
      level,
      children: grow(
        folders.filter((it) => it.parent === folder.id && !outside.includes(it)),
        level + 1,
      ),
    }));
  return grow(outside, 1);
}

/** Flattens the tree, parents before children. */
export const flattenTree = (nodes: readonly FolderNode[]): FolderNode[] =>
  nodes.flatMap((node) => [node, ...flattenTree(node.children)]);

/** Maps each folder id to the names on its path, outermost first. */
export function folderPaths(nodes: readonly FolderNode[]): Map<string, readonly string[]> {
  const paths = new Map<string, readonly string[]>();
  const walk = (node: FolderNode, above: readonly string[]) => {
    const path = [...above, node.folder.name];
    paths.set(node.folder.id, path);
    node.children.forEach((it) => walk(it, path));
  };
  nodes.forEach((node) => walk(node, []));
  return paths;
}

/** Number of levels from this folder down, including itself. */
export const folderHeight = (node: FolderNode): number =>
  1 + Math.max(0, ...node.children.map(folderHeight));

/** Folders that a folder may be moved into: not its parent, not its own subtree, not too deep. */
export function moveTargets(id: string, tree: readonly FolderNode[]): FolderNode[] {
  const all = flattenTree(tree);
  const moved = all.find((node) => node.folder.id === id);
  if (!moved) return [];
  const own = new Set(flattenTree([moved]).map((node) => node.folder.id));
  return all.filter(
    (node) =>
      !own.has(node.folder.id) &&
      node.folder.id !== moved.folder.parent &&
      node.level + folderHeight(moved) <= MAX_FOLDER_LEVELS,
  );
}
