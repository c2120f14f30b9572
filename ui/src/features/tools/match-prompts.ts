/** Questions that servers of tools have words for, and which of them a draft asks for. */
import type { ToolPrompt } from '../../backend/bindings';

export interface OfferedPrompt {
  /** Id and name of its server. */
  readonly server: string;
  readonly serverName: string;
  readonly prompt: ToolPrompt;
}

/** What follows the slash that a draft consists of; null: it asks for no prompt. */
export function slashWords(draft: string): string | null {
  const found = /^\/([^/\n]{0,80})$/u.exec(draft);
  return found?.[1] ?? null;
}

/** Those that have each of the words somewhere. */
export function matchingPrompts(
  list: readonly OfferedPrompt[],
  wanted: string,
): readonly OfferedPrompt[] {
  const words = wanted.toLowerCase().split(/\s+/u).filter(Boolean);
  const text = ({ serverName, prompt }: OfferedPrompt) =>
    `${prompt.name}\n${prompt.title}\n${serverName}\n${prompt.description}`.toLowerCase();
  return list.filter((it) => words.every((word) => text(it).includes(word)));
}
