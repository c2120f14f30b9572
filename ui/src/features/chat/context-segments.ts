/** Splits the context window into segments: what fills it and what is left. Pure. */

export type SegmentKind =
  | 'project_system'
  | 'system'
  | 'memory'
  | 'tools'
  | 'project_files'
  | 'files'
  | 'history'
  | 'message'
  | 'answer'
  | 'free';

export interface ContextSegment {
  readonly kind: SegmentKind;
  readonly tokens: number;
}

export interface TokenCounts {
  /** Tokens of the whole prompt, including the draft. */
  readonly used: number;
  /** Context size in tokens; 0: unknown. */
  readonly limit: number;
  readonly system: number;
  /** The user's notes. */
  readonly memory?: number;
  /** Tool descriptions. */
  readonly tools: number;
  /** Attachments of earlier messages. */
  readonly files: number;
  /** What of the system prompt and the attachments came from the chat's project. */
  readonly project?: { readonly instructions: number; readonly files: number } | undefined;
  /** Attachments of the draft. */
  readonly drafted: number;
  /** The conversation without the draft, including system prompt, tools and attachments. */
  readonly before: number;
  /** Maximum answer length; 0: limited by the context alone. */
  readonly longest: number;
}

/** Segments in reading order, without empty ones. They add up to the limit, if it is known. */
export function contextSegments(counted: TokenCounts): ContextSegment[] {
  const { used, limit, longest } = counted;
  const begun = clamp(counted.before, used);
  const system = clamp(counted.system, begun);
  const memory = clamp(counted.memory ?? 0, begun - system);
  const tools = clamp(counted.tools, begun - system - memory);
  const files = clamp(counted.files, begun - system - memory - tools);
  const given = clamp(counted.project?.files ?? 0, files);
  const isProjects = (counted.project?.instructions ?? 0) > 0;
  const drafted = clamp(counted.drafted, used - begun);
  const rest = Math.max(0, limit - used);
  const answer = longest > 0 ? Math.min(longest, rest) : rest;
  const parts: ContextSegment[] = [
    { kind: isProjects ? 'project_system' : 'system', tokens: system },
    { kind: 'memory', tokens: memory },
    { kind: 'tools', tokens: tools },
    { kind: 'project_files', tokens: given },
    { kind: 'files', tokens: files - given + drafted },
    { kind: 'history', tokens: begun - system - memory - tools - files },
    { kind: 'message', tokens: used - begun - drafted },
    { kind: 'answer', tokens: answer },
    { kind: 'free', tokens: rest - answer },
  ];
  return parts.filter((it) => it.tokens > 0);
}

const clamp = (tokens: number, most: number): number => Math.min(Math.max(tokens, 0), most);
