/** Filters the resources of tool servers. */
import type { ToolResource } from '../../backend/bindings';

/** Keeps those that contain each word. */
export function filterResources(
  list: readonly ToolResource[],
  wanted: string,
): readonly ToolResource[] {
  const words = wanted.toLowerCase().split(/\s+/u).filter(Boolean);
  const text = (it: ToolResource) => `${it.name}\n${it.uri}\n${it.description}`.toLowerCase();
  return list.filter((it) => words.every((word) => text(it).includes(word)));
}
