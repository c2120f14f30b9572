/** The user's own prompts, which the setting `prompts` holds as a list. */

export interface OwnPrompt {
  readonly name: string;
  readonly text: string;
}

/** Longest name, as the application checks it. */
export const MAX_NAME_CHARS = 60;

/** Entries without a name or a text are left out: the page must not fail over them. */
export function ownPrompts(value: unknown): readonly OwnPrompt[] {
  if (!Array.isArray(value)) return [];
  return value.filter(
    (it: Partial<OwnPrompt> | null): it is OwnPrompt =>
      typeof it?.name === 'string' && typeof it.text === 'string',
  );
}

/** Whether `name` is free for the prompt at `index`; -1: a new one. */
export const isNameFree = (prompts: readonly OwnPrompt[], name: string, index: number): boolean =>
  prompts.every((it, at) => at === index || it.name !== name);
