/** Wire values for tests, complete and valid; a test overrides what matters to it. */
import type {
  Attachment,
  Conversation,
  ConversationOptions,
  ConversationSummary,
  Folder,
  Message,
  SettingRow,
  TurnStats,
} from '../backend/bindings';

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
  presence_penalty: null,
  frequency_penalty: null,
  samplers: null,
  stop: null,
  json_schema: null,
  thinking: null,
  reasoning_effort: null,
  image_detail: null,
  tools: null,
  preset: null,
  memory: null,
  project: null,
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
    compaction: null,
    compression: null,
    options: NO_OPTIONS,
  };
}

export const attachment = (id: string, over: Partial<Attachment> = {}): Attachment => ({
  id,
  name: `${id}.txt`,
  kind: 'text',
  bytes: 3,
  findings: [],
  ...over,
});

export const settingRow = (over: Partial<SettingRow> & { readonly key: string }): SettingRow => ({
  section: 'General',
  group: 'General',
  at_load: false,
  label: over.key,
  help: '',
  kind: { kind: 'toggle' },
  default: false,
  value: false,
  ...over,
});

const row = (key: string, label: string, kind: SettingRow['kind'], value: unknown) =>
  ({ key, label, help: '', section: '', group: '', kind, value, default: value }) as SettingRow;
/** Rows of a number, an integer and a choice. */
export const NUMBER_AND_CHOICE_ROWS = [
  row('temperature', 'Temperature', { kind: 'number', min: 0, max: 2, step: 0.05 }, 0.7),
  row('seed', 'Seed', { kind: 'integer', min: 0, max: 99, absent: 'a new one' }, null),
  row(
    'reasoning_effort',
    'Effort',
    { kind: 'choice', options: [{ value: 'high', label: 'High' }] },
    'high',
  ),
];

export const summary = (
  id: string,
  over: Partial<ConversationSummary> = {},
): ConversationSummary => ({
  ...conversation(id, null, []).summary,
  ...over,
});

export const folder = (id: string): Folder => ({ id, name: id, parent: null });
