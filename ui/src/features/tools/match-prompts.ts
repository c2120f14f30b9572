/** Finds the prompts that a draft with a slash asks for: the user's own, then those of tool servers. */
import type { ToolPrompt } from '../../backend/bindings';
import type { OwnPrompt } from '../../shared/own-prompts';
import { searchForm } from '../../shared/search-form';

export interface OfferedPrompt {
  /** Id and name of the server. */
  readonly server: string;
  readonly serverName: string;
  readonly prompt: ToolPrompt;
}

/** A row of the menu. */
export interface MenuPrompt {
  readonly id: string;
  readonly title: string;
  /** Where it comes from; empty: the user wrote it. */
  readonly from: string;
  readonly description: string;
  readonly source: { readonly own: OwnPrompt } | { readonly offered: OfferedPrompt };
}

/** Returns the text after a leading slash; null if the draft is no slash command. */
export function slashQuery(draft: string): string | null {
  const found = /^\/([^/\n]{0,80})$/u.exec(draft);
  return found?.[1] ?? null;
}

const ofOwn = (own: OwnPrompt): MenuPrompt => ({
  id: `own ${own.name}`,
  title: own.name,
  from: '',
  description: own.text,
  source: { own },
});

const ofServer = (offered: OfferedPrompt): MenuPrompt => ({
  id: `${offered.server} ${offered.prompt.name}`,
  title: offered.prompt.title,
  from: offered.serverName,
  description: offered.prompt.description,
  source: { offered },
});

/** Keeps those that contain each word. */
export function matchPrompts(
  own: readonly OwnPrompt[],
  offered: readonly OfferedPrompt[],
  wanted: string,
): readonly MenuPrompt[] {
  const words = searchForm(wanted).split(/\s+/u).filter(Boolean);
  const name = ({ source }: MenuPrompt) => ('offered' in source ? source.offered.prompt.name : '');
  const text = (it: MenuPrompt) =>
    searchForm(`${name(it)}\n${it.title}\n${it.from}\n${it.description}`);
  return [...own.map(ofOwn), ...offered.map(ofServer)].filter((it) =>
    words.every((word) => text(it).includes(word)),
  );
}
