/** What servers of tools offer to be read. */
import type { ToolResource } from '../../backend/bindings';

/** Those that have each of the words somewhere. */
export function matching(list: readonly ToolResource[], wanted: string): readonly ToolResource[] {
  const words = wanted.toLowerCase().split(/\s+/u).filter(Boolean);
  const text = (it: ToolResource) => `${it.name}\n${it.uri}\n${it.description}`.toLowerCase();
  return list.filter((it) => words.every((word) => text(it).includes(word)));
}
