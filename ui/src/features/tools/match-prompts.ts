/** Finds the tool server prompts that a draft with a slash asks for. */
import type { ToolPrompt } from '../../backend/bindings';

export interface OfferedPrompt {
  /** Id and name of the server. */
  readonly server: string;
  readonly serverName: string;
  readonly prompt: ToolPrompt;
}

/** Returns the text after a leading slash; null if the draft is no slash command. */
export function slashQuery(draft: string): string | null {
  const found = /^\/([^/\n]{0,80})$/u.exec(draft);
  return found?.[1] ?? null;
}

/** Keeps those that contain each word. */
export function matchPrompts(
  list: readonly OfferedPrompt[],
  wanted: string,
): readonly OfferedPrompt[] {
  const words = wanted.toLowerCase().split(/\s+/u).filter(Boolean);
  const text = ({ serverName, prompt }: OfferedPrompt) =>
    `${prompt.name}\n${prompt.title}\n${serverName}\n${prompt.description}`.toLowerCase();
  return list.filter((it) => words.every((word) => text(it).includes(word)));
}
