// Generated from src-tauri/crates/api by `make types`. Do not edit.

export type AppInfo = { version: string, data_dir: string, log_dir: string, 
/**
 * Physical cores of this machine.
 */
cores: number, 
/**
 * The instruction set level the kernels run at, such as `avx512`.
 */
isa: string, };

/**
 * What every failure looks like at an edge. `remedy` is a sentence that names the next step.
 */
export type ErrorInfo = { code: string, message: string, remedy: string, };

export type ConversationSummary = { id: string, title: string, 
/**
 * Library id of the model that answers here.
 */
model: string, created_ms: number, updated_ms: number, 
/**
 * The turn that is answering right now.
 */
active_turn: string | null, 
/**
 * The folder it lies in.
 */
folder: string | null, pinned: boolean, 
/**
 * In the trash since then.
 */
deleted_ms: number | null, 
/**
 * The one that was used last has the greatest, whatever the clock says.
 */
activity: number, 
/**
 * Grows with everything that changes in it.
 */
revision: number, };

export type Conversation = { summary: ConversationSummary, 
/**
 * The active branch, root first.
 */
messages: Array<Message>, options: ConversationOptions, 
/**
 * The model is not shown, or not word for word, what comes before.
 */
fold: FoldInfo | null, 
/**
 * What becomes of it when it is longer than the context. Absent: as the setting says.
 */
compression: FoldStrategy | null, };

/**
 * What becomes of conversations that are longer than the context.
 */
export type FoldStrategy = "off" | "window" | "summary" | "attention";

/**
 * Up to where messages are folded. They stay; only the model is not shown them.
 */
export type FoldInfo = { 
/**
 * The last message that is folded.
 */
until: string, strategy: FoldStrategy, 
/**
 * What the model is told of them instead.
 */
summary: string | null, 
/**
 * Of the prompt.
 */
tokens_before: number, tokens_after: number, created_ms: number, };

export type Role = "system" | "user" | "assistant";

export type MessageState = "streaming" | "complete" | "stopped" | "interrupted" | "failed";

export type Message = { id: string, parent: string | null, role: Role, 
/**
 * While `state` is `streaming`: what has been saved so far. A watcher of the turn from sequence
 * number 0 gets the whole answer again, so it starts from an empty text.
 */
text: string, reasoning: string, 
/**
 * Tools that the model wants called, in order.
 */
tool_calls: Array<ToolCall>, state: MessageState, error: ErrorInfo | null, model: string | null, stats: TurnStats | null, created_ms: number, 
/**
 * This message is version `version` of `versions` under its parent, counted from 1.
 */
version: number, versions: number, };

/**
 * A function that the model wants called.
 */
export type ToolCall = { id: string, name: string, 
/**
 * A JSON object.
 */
arguments: string, };

export type NoArgs = Record<symbol, never>;

export type IdArgs = { id: string, };

export type RenameArgs = { id: string, title: string, };

export type SetModelArgs = { id: string, 
/**
 * Library id.
 */
model: string, };

export type SetCompressionArgs = { id: string, 
/**
 * Absent: as the setting says.
 */
strategy?: FoldStrategy | null, };

export type RetryArgs = { conversation: string, };

export type TurnArgs = { turn: string, };

export type TextArgs = { text: string, };

/**
 * Something in a text that a reader may not notice.
 */
export type Finding = { "type": "hidden", 
/**
 * Where the first of them stands, in characters.
 */
at: number, count: number, 
/**
 * Such as `U+202E`, each once.
 */
names: Array<string>, } | { "type": "instruction", at: number, quote: string, };

export type PathArgs = { 
/**
 * A GGUF file, or a folder with safetensors, config.json and tokenizer.json.
 */
path: string, };

export type SettingArgs = { key: string, 
/**
 * `null` where the setting may be absent.
 */
value: unknown, };

export type KeyArgs = { key: string, };

export type SendArgs = { 
/**
 * Absent: a new conversation is made.
 */
conversation?: string | null, text: string, 
/**
 * Library id; absent: the conversation's model, or the default.
 */
model?: string | null, };

export type DraftArgs = { 
/**
 * Absent: a conversation that is about to begin.
 */
conversation?: string | null, text: string, 
/**
 * Library id; absent: the conversation's model, or the default.
 */
model?: string | null, };

/**
 * What sending a draft would cost.
 */
export type DraftCount = { 
/**
 * Of the whole prompt: the conversation, the draft, and the markup of the model's template.
 */
tokens: number, context_limit: number, 
/**
 * The model can be told to think or not to.
 */
can_think_or_not: boolean, };

export type TurnStarted = { turn: string, conversation: string, user_message: string, assistant_message: string, };

/**
 * One step of a turn. Sequence numbers start at 1 and have no gaps; any watcher can replay them.
 */
export type TurnEvent = { seq: number, turn: string, kind: TurnEventKind, };

export type TurnEventKind = { "type": "queued", position: number, } | { "type": "loading", fraction: number, } | { "type": "prefill", done: number, total: number, } | { "type": "compacting", messages: number, } | { "type": "compacted", fold: FoldInfo, } | { "type": "text", text: string, ids: Array<number>, } | { "type": "reasoning", text: string, ids: Array<number>, } | { "type": "tool_call", call: ToolCall, } | { "type": "notice", error: ErrorInfo, } | { "type": "done", stats: TurnStats, } | { "type": "failed", error: ErrorInfo, };

export type Finish = "stop" | "tool_calls" | "length" | "cancelled" | "context_full" | "time_up";

export type TurnStats = { finish: Finish, prompt_tokens: number, 
/**
 * Prompt tokens that were in the KV cache already.
 */
reused_tokens: number, generated_tokens: number, 
/**
 * Tokens that were guessed ahead and checked.
 */
drafted_tokens: number, 
/**
 * Those of them that came true.
 */
accepted_tokens: number, context_tokens: number, context_limit: number, load_ms: number, ttft_ms: number, prefill_tok_s: number, decode_tok_s: number, };

export type ModelSource = "built_in" | "file";

export type ModelState = { "state": "unloaded" } | { "state": "loading", fraction: number, } | { "state": "ready" } | { "state": "unusable", error: ErrorInfo, };

export type ModelEntry = { id: string, name: string, source: ModelSource, path: string | null, bytes: number, architecture: string, parameters: number, 
/**
 * The dtype most weights have, such as `Q4_K`.
 */
dtype: string, context_length: number, state: ModelState, };

export type SettingKind = { "kind": "number", min: number, max: number, step: number, } | { "kind": "integer", min: number, max: number, 
/**
 * What the empty field means, where the value may be absent.
 */
absent: string | null, } | { "kind": "choice", options: Array<ChoiceOption>, } | { "kind": "toggle" } | { "kind": "text", placeholder: string, } | { "kind": "read_only" };

export type ChoiceOption = { value: string, label: string, };

export type SettingRow = { key: string, section: string, label: string, help: string, kind: SettingKind, default: unknown, value: unknown, };

export type CheckpointArgs = { conversation: string, name: string, };

export type CheckpointsArgs = { 
/**
 * None: of all conversations.
 */
conversation: string | null, };

/**
 * A named place in a conversation.
 */
export type CheckpointInfo = { id: string, name: string, conversation: string, 
/**
 * The last message that belongs to it.
 */
message: string, created_ms: number, 
/**
 * Of the stored context; 0: there is none (any more), and it is read anew.
 */
bytes: number, };

/**
 * How contexts use memory and disk, and how often they were found, since the worker began.
 */
export type KvInfo = { turns: number, prompt_tokens: number, 
/**
 * Share of prompt tokens that were not computed again.
 */
hit_rate: number, memory: KvTier, 
/**
 * Of the memory's hits, those in another conversation's context.
 */
shared_tokens: number, disk: KvTier, files: number, 
/**
 * Bytes that named checkpoints keep from eviction.
 */
pinned_bytes: number, 
/**
 * Contexts in memory.
 */
contexts: number, pages: KvPool, window_pages: KvPool, states: KvPool, };

export type KvTier = { bytes: number, budget_bytes: number, hit_tokens: number, };

/**
 * Places of one allocator.
 */
export type KvPool = { places: number, held: number, 
/**
 * Held by more than one context.
 */
shared: number, 
/**
 * Share of the places ever used that is free now.
 */
fragmentation: number, };

export type AppEvent = { "type": "conversation_changed", conversation: ConversationSummary, } | { "type": "conversation_removed", id: string, } | { "type": "folder_changed", folder: Folder, } | { "type": "folder_removed", id: string, } | { "type": "model_changed", model: ModelEntry, } | { "type": "model_removed", id: string, } | { "type": "setting_changed", row: SettingRow, } | { "type": "notice", error: ErrorInfo, };

/**
 * What a conversation has of its own; what is absent is as the settings say.
 */
export type ConversationOptions = { 
/**
 * Stands before the first message, for the model alone.
 */
system_prompt: string | null, temperature: number | null, top_k: number | null, top_p: number | null, min_p: number | null, repeat_penalty: number | null, seed: number | null, 
/**
 * Longest answer, in tokens.
 */
max_tokens: number | null, };

export type SetOptionsArgs = { id: string, options: ConversationOptions, };

export type EditArgs = { 
/**
 * A message of the user's: a new version of it begins a branch.
 */
message: string, text: string, };

export type RegenerateArgs = { 
/**
 * An answer, or the question to answer again.
 */
message: string, 
/**
 * Library id; absent: the conversation's model.
 */
model?: string | null, };

export type MessageArgs = { message: string, };

export type ChooseArgs = { message: string, 
/**
 * Counted from 1, of those beside the message; absent: the message itself.
 */
version?: number | null, };

export type PinArgs = { id: string, pinned: boolean, };

export type MoveArgs = { id: string, 
/**
 * Null: out of any folder.
 */
folder: string | null, };

export type Folder = { id: string, name: string, };

export type NameArgs = { name: string, };

export type FolderNameArgs = { id: string, name: string, };

export type SearchArgs = { 
/**
 * Words by their beginnings; what stands in quotes is looked for as it stands.
 */
query: string, 
/**
 * Absent: 50.
 */
limit?: number | null, };

export type SearchResult = { 
/**
 * Conversations whose title has all the words.
 */
titles: Array<TitleHit>, 
/**
 * Messages that have all the words, newest first.
 */
messages: Array<MessageHit>, };

export type TitleHit = { conversation: string, title: string, };

export type MessageHit = { conversation: string, title: string, message: string, role: Role, created_ms: number, 
/**
 * A part of the message, in pieces.
 */
snippet: Array<SnippetPart>, };

export type SnippetPart = { text: string, 
/**
 * It is what was looked for.
 */
hit: boolean, };

/**
 * How many conversations a use case went over.
 */
export type Count = { count: number, };

export type ExportFormat = "md" | "json";

export type ExportArgs = { 
/**
 * Null: every conversation.
 */
id: string | null, format: ExportFormat, };

export type ExportToArgs = { 
/**
 * Null: every conversation.
 */
id: string | null, format: ExportFormat, path: string, };

export type Exported = { 
/**
 * For a file.
 */
name: string, text: string, };

export type FileName = { name: string, };

/**
 * A file that was written.
 */
export type Saved = { path: string, bytes: number, };

export type BytesArgs = { 
/**
 * A file's bytes.
 */
base64: string, };

export type Imported = { conversations: Array<ConversationSummary>, 
/**
 * How many could not be used.
 */
failed: number, 
/**
 * The first of those.
 */
failures: Array<ErrorInfo>, };

export type Restored = { 
/**
 * Conversations that were not there.
 */
added: number, 
/**
 * Those that were there with other messages: the backup's lie beside them.
 */
beside: number, 
/**
 * Those that were there as they are.
 */
same: number, };

/** Every use case: what it takes and what it gives. */
export type Calls = {
  app_info: { args: NoArgs; result: AppInfo };
  conversations_list: { args: NoArgs; result: Array<ConversationSummary> };
  conversation_get: { args: IdArgs; result: Conversation };
  conversation_rename: { args: RenameArgs; result: ConversationSummary };
  conversation_delete: { args: IdArgs; result: null };
  conversation_restore: { args: IdArgs; result: ConversationSummary };
  conversation_set_model: { args: SetModelArgs; result: ConversationSummary };
  conversation_set_compression: { args: SetCompressionArgs; result: null };
  conversation_compact: { args: IdArgs; result: FoldInfo };
  conversation_unfold: { args: IdArgs; result: Conversation };
  conversation_options: { args: SetOptionsArgs; result: ConversationSummary };
  conversation_pin: { args: PinArgs; result: ConversationSummary };
  conversation_move: { args: MoveArgs; result: ConversationSummary };
  conversation_forget: { args: IdArgs; result: null };
  trash_list: { args: NoArgs; result: Array<ConversationSummary> };
  trash_empty: { args: NoArgs; result: Count };
  folders_list: { args: NoArgs; result: Array<Folder> };
  folder_add: { args: NameArgs; result: Folder };
  folder_rename: { args: FolderNameArgs; result: Folder };
  folder_remove: { args: IdArgs; result: null };
  export: { args: ExportArgs; result: Exported };
  export_name: { args: ExportArgs; result: FileName };
  export_to: { args: ExportToArgs; result: Saved };
  import_file: { args: PathArgs; result: Imported };
  import_bytes: { args: BytesArgs; result: Imported };
  data_backup: { args: PathArgs; result: Saved };
  data_restore: { args: PathArgs; result: Restored };
  search: { args: SearchArgs; result: SearchResult };
  message_edit: { args: EditArgs; result: TurnStarted };
  message_regenerate: { args: RegenerateArgs; result: TurnStarted };
  message_continue: { args: MessageArgs; result: TurnStarted };
  message_choose: { args: ChooseArgs; result: ConversationSummary };
  message_fork: { args: MessageArgs; result: ConversationSummary };
  message_delete: { args: MessageArgs; result: ConversationSummary };
  message_restore: { args: MessageArgs; result: ConversationSummary };
  text_scan: { args: TextArgs; result: Array<Finding> };
  send: { args: SendArgs; result: TurnStarted };
  draft_count: { args: DraftArgs; result: DraftCount };
  retry: { args: RetryArgs; result: TurnStarted };
  turn_cancel: { args: TurnArgs; result: null };
  conversation_prefetch: { args: IdArgs; result: null };
  checkpoint_save: { args: CheckpointArgs; result: CheckpointInfo };
  checkpoints_list: { args: CheckpointsArgs; result: Array<CheckpointInfo> };
  checkpoint_restore: { args: IdArgs; result: ConversationSummary };
  checkpoint_remove: { args: IdArgs; result: null };
  kv_stats: { args: NoArgs; result: KvInfo };
  models_list: { args: NoArgs; result: Array<ModelEntry> };
  model_add: { args: PathArgs; result: ModelEntry };
  model_remove: { args: IdArgs; result: null };
  settings_list: { args: NoArgs; result: Array<SettingRow> };
  settings_set: { args: SettingArgs; result: SettingRow };
  settings_reset: { args: KeyArgs; result: SettingRow };
};
