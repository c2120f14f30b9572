/** What the context of a model is full of, and what is left of it. Pure. */

export type PartKind = 'system' | 'tools' | 'files' | 'history' | 'message' | 'answer' | 'free';

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
  /** Descriptions of tools. */
  readonly tools: number;
  /** Files of earlier messages. */
  readonly files: number;
  /** Files of the draft. */
  readonly drafted: number;
  /** The conversation without the draft; system prompt, tools and files with it. */
  readonly before: number;
  /** The longest answer that is set; 0: as long as there is room. */
  readonly longest: number;
}

/** In the order in which the model reads it; what is nothing is left out. They add up to the limit, if there is one. */
export function partsOf(counted: Counted): Part[] {
  const { used, limit, longest } = counted;
  const begun = within(counted.before, used);
  const system = within(counted.system, begun);
  const tools = within(counted.tools, begun - system);
  const files = within(counted.files, begun - system - tools);
  const drafted = within(counted.drafted, used - begun);
  const rest = Math.max(0, limit - used);
  const answer = longest > 0 ? Math.min(longest, rest) : rest;
  const parts: Part[] = [
    { kind: 'system', tokens: system },
    { kind: 'tools', tokens: tools },
    { kind: 'files', tokens: files + drafted },
    { kind: 'history', tokens: begun - system - tools - files },
    { kind: 'message', tokens: used - begun - drafted },
    { kind: 'answer', tokens: answer },
    { kind: 'free', tokens: rest - answer },
  ];
  return parts.filter((it) => it.tokens > 0);
}

const within = (tokens: number, most: number): number => Math.min(Math.max(tokens, 0), most);
