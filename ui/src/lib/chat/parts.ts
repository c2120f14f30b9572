/** What the context of a model is full of, and what is left of it. Pure. */

export type PartKind = 'system' | 'history' | 'message' | 'answer' | 'free';

export interface Part {
  readonly kind: PartKind;
  readonly tokens: number;
}

export interface Counted {
  /** Of the whole prompt, the draft with it. */
  readonly used: number;
  /** 0: nobody says how many tokens the model holds. */
  readonly limit: number;
  readonly system: number;
  /** The conversation without the draft, its system prompt with it. */
  readonly before: number;
  /** The longest answer that is set; 0: as long as there is room. */
  readonly longest: number;
}

/** In the order in which the model reads it; what is nothing is left out. They add up to the limit, if there is one. */
export function partsOf({ used, limit, system, before, longest }: Counted): Part[] {
  const begun = Math.min(Math.max(before, 0), used);
  const first = Math.min(Math.max(system, 0), begun);
  const rest = Math.max(0, limit - used);
  const answer = longest > 0 ? Math.min(longest, rest) : rest;
  const parts: Part[] = [
    { kind: 'system', tokens: first },
    { kind: 'history', tokens: begun - first },
    { kind: 'message', tokens: used - begun },
    { kind: 'answer', tokens: answer },
    { kind: 'free', tokens: rest - answer },
  ];
  return parts.filter((it) => it.tokens > 0);
}
