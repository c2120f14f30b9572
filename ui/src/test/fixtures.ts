import type { Conversation, ConversationOptions, Message, TurnStats } from '../backend/bindings';

export const STATS: TurnStats = {
  finish: 'stop',
  prompt_tokens: 20,
  reused_tokens: 4,
  generated_tokens: 3,
  drafted_tokens: 0,
  accepted_tokens: 0,
  context_tokens: 23,
  context_limit: 2048,
  load_ms: 10,
  ttft_ms: 30,
  prefill_tok_s: 900,
  decode_tok_s: 42.1,
};

export const NO_OPTIONS: ConversationOptions = {
  system_prompt: null,
  temperature: null,
  top_k: null,
  top_p: null,
  min_p: null,
  repeat_penalty: null,
  seed: null,
  max_tokens: null,
  tools: null,
  preset: null,
};

export function message(over: Partial<Message>): Message {
  return {
    id: 'm',
    parent: null,
    role: 'assistant',
    text: '',
    reasoning: '',
    tool_calls: [],
    state: 'complete',
    error: null,
    model: 'starter',
    stats: null,
    attachments: [],
    sources: [],
    created_ms: 0,
    version: 1,
    versions: 1,
    ...over,
  };
}

export function conversation(
  id: string,
  activeTurn: string | null,
  messages: Message[],
): Conversation {
  return {
    summary: {
      id,
      title: id,
      model: 'starter',
      created_ms: 0,
      updated_ms: 1,
      active_turn: activeTurn,
      folder: null,
      pinned: false,
      deleted_ms: null,
      activity: 1,
      revision: 1,
    },
    messages,
    fold: null,
    compression: null,
    options: NO_OPTIONS,
  };
}
