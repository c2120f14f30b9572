/** Folders as they lie in one another. */
import type { Folder } from '../../backend/bindings';

/** As in the application: deeper ones are refused there. */
export const MOST_LEVELS = 5;

export interface FolderNode {
  readonly folder: Folder;
  /** From 1: it lies in none. */
  readonly level: number;
  readonly inside: readonly FolderNode[];
}

/** In the order of the list. One whose parent is not there, or that lies in itself, stands outside. */
export function treeOf(folders: readonly Folder[]): FolderNode[] {
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
      inside: grow(
        folders.filter((it) => it.parent === folder.id && !outside.includes(it)),
        level + 1,
      ),
    }));
  return grow(outside, 1);
}

/** Each with all that lie in it, the outer ones first. */
export const flatten = (nodes: readonly FolderNode[]): FolderNode[] =>
  nodes.flatMap((node) => [node, ...flatten(node.inside)]);

/** The names on the way to each, the outermost first, by its id. */
export function pathsOf(nodes: readonly FolderNode[]): Map<string, readonly string[]> {
  const paths = new Map<string, readonly string[]>();
  const walk = (node: FolderNode, above: readonly string[]) => {
    const path = [...above, node.folder.name];
    paths.set(node.folder.id, path);
    node.inside.forEach((it) => walk(it, path));
  };
  nodes.forEach((node) => walk(node, []));
  return paths;
}

/** Levels of folders from this one down, itself counted. */
export const heightOf = (node: FolderNode): number => 1 + Math.max(0, ...node.inside.map(heightOf));

/** Where a folder may be moved to: not where it is, not into itself, not too deep. */
export function placesFor(id: string, tree: readonly FolderNode[]): FolderNode[] {
  const all = flatten(tree);
  const moved = all.find((node) => node.folder.id === id);
  if (!moved) return [];
  const own = new Set(flatten([moved]).map((node) => node.folder.id));
  return all.filter(
    (node) =>
      !own.has(node.folder.id) &&
      node.folder.id !== moved.folder.parent &&
      node.level + heightOf(moved) <= MOST_LEVELS,
  );
}
