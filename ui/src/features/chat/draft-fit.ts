/** Whether a draft can be answered at all, before it is sent, and the one step that helps. */
import type { CompactionStrategy, ContextParts } from '../../backend/bindings';

/** Tokens of a short answer: with less room, sending is pointless. */
const MIN_ANSWER_TOKENS = 64;

export interface DraftSize {
  /** Of the whole prompt with the draft. */
  readonly tokens: number;
  /** 0: unknown. */
  readonly limit: number;
  /** What a full context does with older messages. */
  readonly strategy: CompactionStrategy;
  /** The prompt before the draft; null: not known, or there are no messages. */
  readonly before: Pick<ContextParts, 'before' | 'system' | 'tools'> | null;
}

/** Tokens that stay in the prompt whatever is left out of it. */
export function leastTokens({ tokens, strategy, before }: DraftSize): number {
  if (before === null || strategy === 'off') return tokens;
  const draft = Math.max(0, tokens - before.before);
  return draft + before.system + before.tools;
}

export const fits = (size: DraftSize): boolean =>
  size.limit === 0 || leastTokens(size) + MIN_ANSWER_TOKENS <= size.limit;

/** Longer drafts are worth being a file, whose matching passages are looked up. */
const FILE_CHARS = 2_000;

export type DraftRemedy = 'attach' | 'larger' | 'model' | 'shorten';

/** The step that helps most. `canGrow`: the model can hold more than it does now. */
export function remedyFor(
  draft: { readonly chars: number },
  model: { readonly canGrow: boolean; readonly hasOthers: boolean },
): DraftRemedy {
  if (draft.chars >= FILE_CHARS) return 'attach';
  if (model.canGrow) return 'larger';
  return model.hasOthers ? 'model' : 'shorten';
}
