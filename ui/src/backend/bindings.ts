// Generated from src-tauri/crates/contract by `make types`. Do not edit.

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
export type ErrorInfo = { code: string, message: string, remedy: string, 
/**
 * What can be done about it at once, if the user wishes.
 */
action?: ErrorAction, };

export type AttachmentKind = "text" | "markdown" | "code" | "csv" | "pdf";

/**
 * A file that was read, for a message that will be sent or was.
 */
export type Attachment = { id: string, name: string, kind: AttachmentKind, 
/**
 * Of the file as it was.
 */
bytes: number, 
/**
 * What a reader may not notice in it.
 */
findings: Array<Finding>, 
/**
 * The model was given all of it; else the passages that match. Absent: it has not been sent.
 */
whole?: boolean, 
/**
 * Of all of it, as the model counts that it was sent to. Absent: it has not been sent.
 */
tokens?: number, 
/**
 * That count is an estimate.
 */
is_about?: boolean, 
/**
 * The encoding that was guessed.
 */
guessed?: string, };

/**
 * A file's text, or so much of it as is shown at once.
 */
export type AttachmentText = { attachment: Attachment, text: string, 
/**
 * The byte of the whole text that this begins with.
 */
start: number, 
/**
 * Bytes of the whole text.
 */
total: number, };

export type AttachmentTextArgs = { id: string, 
/**
 * A byte of its text that is to be seen; absent: the first.
 */
at?: number | null, };

/**
 * What a file of a draft would cost.
 */
export type AttachmentCost = { id: string, 
/**
 * Of what the model would be given of it.
 */
tokens: number, 
/**
 * Of all of it.
 */
tokens_whole: number, 
/**
 * It fits as a whole; else it is searched for what the draft asks.
 */
whole: boolean, };

export type AttachArgs = { name: string, 
/**
 * The file's bytes.
 */
base64: string, };

/**
 * What of a file an answer could know.
 */
export type Source = { 
/**
 * The file, by its id.
 */
attachment: string, name: string, kind: AttachmentKind, 
/**
 * Absent: all of it.
 */
passage?: Passage, };

/**
 * A part of a file's text.
 */
export type Passage = { 
/**
 * Bytes of its text.
 */
start: number, end: number, 
/**
 * From 1.
 */
first_line: number, last_line: number, 
/**
 * From 1, where it has pages.
 */
page?: number, };

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
compaction: CompactionInfo | null, 
/**
 * What becomes of it when it is longer than the context. Absent: as the setting says.
 */
compression: CompactionStrategy | null, };

/**
 * What becomes of conversations that are longer than the context.
 */
export type CompactionStrategy = "off" | "window" | "summary" | "attention";

/**
 * How far the conversation is compacted: messages up to `until` stay, but the model is not shown them.
 */
export type CompactionInfo = { 
/**
 * The last message that the model is not shown.
 */
until: string, strategy: CompactionStrategy, 
/**
 * The summary that the model is given in their place.
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
tool_calls: Array<ToolCall>, state: MessageState, error: ErrorInfo | null, model: string | null, stats: TurnStats | null, 
/**
 * Files of a question.
 */
attachments: Array<Attachment>, 
/**
 * What of files an answer's question gave to the model.
 */
sources: Array<Source>, created_ms: number, 
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
arguments: string, 
/**
 * Absent: it is no call of a tool of ours, or it has not been looked at yet.
 */
run?: ToolRun, };

/**
 * A call of one of our tools.
 */
export type ToolRun = { 
/**
 * Id and name of its server; empty where no server has such a tool.
 */
server: string, server_name: string, 
/**
 * As its server calls it.
 */
tool: string, state: ToolRunState, 
/**
 * As the model is told.
 */
result: string, 
/**
 * Characters of the result that were left out.
 */
cut: number, duration_ms: number, 
/**
 * What in the result a reader may not notice.
 */
findings: Array<Finding>, 
/**
 * The limit of rounds is reached: the user is asked whatever was allowed before.
 */
at_limit: boolean, };

/**
 * What has become of a call.
 */
export type ToolRunState = "asking" | "running" | "done" | "failed" | "denied" | "stopped";

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
strategy?: CompactionStrategy | null, };

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
model?: string | null, 
/**
 * Files that go with it, by their ids.
 */
attachments?: Array<string>, 
/**
 * What a new conversation has of its own from its first message on; one that is there keeps its own.
 */
options?: ConversationOptions | null, 
/**
 * As `options`.
 */
compression?: CompactionStrategy | null, };

export type DraftArgs = { 
/**
 * Absent: a conversation that is about to begin.
 */
conversation?: string | null, text: string, 
/**
 * Library id; absent: the conversation's model, or the default.
 */
model?: string | null, 
/**
 * Files of the draft, by their ids.
 */
attachments?: Array<string>, 
/**
 * What a conversation that is about to begin will have of its own; one that is there has its options.
 */
options?: ConversationOptions | null, };

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
can_think_or_not: boolean, 
/**
 * The model knows grades of effort, such as `low`.
 */
has_efforts?: boolean, 
/**
 * The count is an estimate: the vocabulary is elsewhere.
 */
is_about?: boolean, 
/**
 * Of each file of the draft.
 */
attachments: Array<AttachmentCost>, };

/**
 * What a prompt consists of before the draft, in tokens. What is left of `before` is what was said.
 */
export type ContextParts = { 
/**
 * The whole prompt without the draft; none where a conversation is about to begin.
 */
before: number, system: number, 
/**
 * Descriptions of the tools that the model is told of.
 */
tools: number, 
/**
 * Of earlier messages, as far as the model is shown them.
 */
files: number, };

export type TurnStarted = { turn: string, conversation: string, user_message: string, assistant_message: string, };

/**
 * One step of a turn. Sequence numbers start at 1 and have no gaps; any watcher can replay them.
 */
export type TurnEvent = { seq: number, turn: string, kind: TurnEventKind, };

export type TurnEventKind = { "type": "queued", position: number, } | { "type": "loading", fraction: number, } | { "type": "prefill", done: number, total: number, } | { "type": "compacting", messages: number, } | { "type": "compacted", compaction: CompactionInfo, } | { "type": "text", text: string, ids: Array<number>, } | { "type": "reasoning", text: string, ids: Array<number>, } | { "type": "tool_call", call: ToolCall, } | { "type": "notice", error: ErrorInfo, } | { "type": "done", stats: TurnStats, } | { "type": "failed", error: ErrorInfo, };

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
accepted_tokens: number, context_tokens: number, context_limit: number, load_ms: number, ttft_ms: number, prefill_tok_s: number, decode_tok_s: number, 
/**
 * From the first token of its reasoning to the last; 0 where it had none.
 */
thought_ms?: number, 
/**
 * The counts of tokens are estimates.
 */
is_about?: boolean, 
/**
 * The host that answered, where it was not this machine.
 */
answered_by?: string | null, 
/**
 * What it was asked for otherwise than the other answers of its conversation.
 */
once?: OneOffOptions | null, };

export type SettingKind = { "kind": "number", min: number, max: number, step: number, } | { "kind": "integer", min: number, max: number, 
/**
 * What the empty field means, where the value may be absent.
 */
absent: string | null, } | { "kind": "choice", options: Array<ChoiceOption>, } | { "kind": "toggle" } | { "kind": "text", placeholder: string, } | { "kind": "keys" } | { "kind": "read_only" };

export type ChoiceOption = { value: string, label: string, };

export type SettingRow = { key: string, section: string, 
/**
 * Rows that stand together within a section.
 */
group: string, 
/**
 * Models read it when they are loaded.
 */
at_load: boolean, label: string, help: string, kind: SettingKind, default: unknown, value: unknown, };

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
contexts: number, pages: KvPool, window_pages: KvPool, states: KvPool, 
/**
 * Of those that keep everything, in fewer bits.
 */
aged_pages: KvPool, };

/**
 * Whether a server of this data folder listens.
 */
export type ServerState = { "state": "off" } | { "state": "running", ports: Array<number>, } | { "state": "failed", port: number, };

/**
 * Main memory, as the system counts it. Absent: it doesn't say.
 */
export type MemoryInfo = { 
/**
 * Of this program and its workers; pages of models that are mapped count, though they can be let go.
 */
ours_bytes: number | null, 
/**
 * What other programs could still have.
 */
free_bytes: number | null, total_bytes: number | null, };

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

/**
 * What a model computed for.
 */
export type ProfilePhase = "reading" | "writing";

/**
 * An operation, of all layers together.
 */
export type ProfileRow = { 
/**
 * "matmul"; "rest": what no operation took.
 */
op: string, 
/**
 * "attention.q+k+v Q4_K 2048→3072"
 */
what: string, 
/**
 * A graphics card computed it, and told how long by its own clock; else the processor did.
 */
on_card: boolean, calls: number, ms: number, 
/**
 * Of the phase's time, between 0 and 1.
 */
share: number, 
/**
 * Read and written by all calls: weights, keys and values once each.
 */
bytes: number, 
/**
 * None: nothing is read that counts.
 */
gb_s: number | null, };

/**
 * What took longest comes first.
 */
export type ProfilePart = { phase: ProfilePhase, ms: number, rows: Array<ProfileRow>, };

/**
 * Of one answer, or of several that were written together.
 */
export type ProfiledAnswer = { 
/**
 * Library id of the model.
 */
model: string, 
/**
 * Phases without any work are left out.
 */
parts: Array<ProfilePart>, 
/**
 * Steps for which the trace had no room.
 */
n_left_out: number, };

export type ProfileInfo = { 
/**
 * Answers that are asked for from now on are measured.
 */
is_on: boolean, 
/**
 * The last one that was.
 */
answer: ProfiledAnswer | null, };

export type ProfileSwitchArgs = { on: boolean, };

export type ProfileTraceArgs = { 
/**
 * A file that it is written to. None: it comes back as a text.
 */
path?: string, };

/**
 * A token of an answer.
 */
export type Looked = { token: TokenShare, 
/**
 * The likeliest in its place, likeliest first; it may be one of them.
 */
others: Array<TokenShare>, };

/**
 * A token and how likely the model found it.
 */
export type TokenShare = { id: number, text: string, 
/**
 * From 0 to 1, before temperature and everything else that chooses.
 */
probability: number, };

export type PickArgs = { 
/**
 * An answer.
 */
message: string, 
/**
 * Which of its tokens, counted from 0.
 */
index: number, 
/**
 * The token that stands there instead.
 */
token: number, };

export type TemporaryArgs = { 
/**
 * All of the chat, the question last.
 */
messages: Array<TemporaryMessage>, 
/**
 * Library id; absent: the default model.
 */
model?: string | null, 
/**
 * What it has of its own; absent: all is as the settings say.
 */
options?: ConversationOptions | null, };

export type TemporaryMessage = { role: Role, text: string, 
/**
 * Files that go with it, by their ids; they stay as long as the application runs.
 */
attachments?: Array<string>, 
/**
 * Of an answer: what it called, with what that brought.
 */
tool_calls?: Array<ToolCall>, };

export type AppEvent = { "type": "conversation_changed", conversation: ConversationSummary, } | { "type": "conversation_removed", id: string, } | { "type": "folder_changed", folder: Folder, } | { "type": "folder_removed", id: string, } | { "type": "model_changed", model: ModelEntry, } | { "type": "model_removed", id: string, } | { "type": "model_import", progress: ImportProgress, } | { "type": "setting_changed", row: SettingRow, } | { "type": "preset_changed", preset: Preset, } | { "type": "preset_removed", id: string, } | { "type": "download_changed", download: Download, } | { "type": "download_removed", id: string, } | { "type": "tool_calls", 
/**
 * Null: a chat that is kept nowhere; its answers go by the names of their turns.
 */
conversation: string | null, message: string, calls: Array<ToolCall>, 
/**
 * Nothing more happens to them by itself.
 */
over: boolean, 
/**
 * The turn that answers what they brought.
 */
turn: string | null, } | { "type": "tool_server_changed", server: ToolServerInfo, } | { "type": "tool_server_removed", id: string, } | { "type": "notice", error: ErrorInfo, };

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
max_tokens: number | null, 
/**
 * Ids of the servers whose tools the model is told of. Absent: as the settings say.
 */
tools: Array<string> | null, 
/**
 * The preset that these began as.
 */
preset: string | null, };

export type SetOptionsArgs = { id: string, options: ConversationOptions, };

/**
 * What a conversation can be given of its own, under a name.
 */
export type Preset = { id: string, name: string, options: ConversationOptions, 
/**
 * What becomes of conversations that are longer than the context. Absent: as the setting says.
 */
compression: CompactionStrategy | null, };

export type PresetArgs = { 
/**
 * Absent: a new one is made.
 */
id?: string | null, name: string, options: ConversationOptions, compression?: CompactionStrategy | null, };

export type PresetExportArgs = { id: string, 
/**
 * The file to write; absent: the text alone is given.
 */
path?: string | null, };

export type ModelSettingArgs = { 
/**
 * Library id.
 */
id: string, key: string, 
/**
 * Null: as the settings say for all models.
 */
value: unknown, };

export type EditArgs = { 
/**
 * A new version of it begins a branch.
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
model?: string | null, 
/**
 * For this answer alone, over what the conversation has.
 */
once?: OneOffOptions | null, };

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

export type Folder = { id: string, name: string, 
/**
 * The folder it lies in; null: none.
 */
parent: string | null, };

export type FolderAddArgs = { name: string, 
/**
 * The folder it lies in; absent: none.
 */
parent?: string | null, };

export type FolderNameArgs = { id: string, name: string, };

export type FolderMoveArgs = { id: string, 
/**
 * Null: out of any folder.
 */
parent: string | null, };

/**
 * What one answer is asked for otherwise than the others of its conversation; what is absent is as they are.
 */
export type OneOffOptions = { temperature: number | null, top_p: number | null, seed: number | null, 
/**
 * Whether it thinks, for models that can be told; as the setting `thinking`.
 */
thinking: string | null, 
/**
 * How long it thinks, for models that know grades; as the setting `reasoning_effort`.
 */
effort: string | null, };

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

/**
 * What a door offers beside an error's remedy. Never done unasked.
 */
export type ErrorAction = { "type": "use_model", model: string, };

/**
 * Where a model's bytes are.
 */
export type ModelSource = "built_in" | "file" | "owned" | "hub_cache" | "lm_studio" | "folder" | "remote";

export type ModelState = { "state": "unloaded" } | { "state": "loading", fraction: number, } | { "state": "ready" } | { "state": "unusable", error: ErrorInfo, };

/**
 * What a model can do beside answering, as its chat template tells.
 */
export type ModelSkills = { 
/**
 * It can be told of tools.
 */
tools: boolean, thinking: Thinking, };

/**
 * Whether a model thinks before it answers, and what it can be told of that.
 */
export type Thinking = "never" | "always" | "switched" | "graded";

export type ModelEntry = { id: string, name: string, source: ModelSource, path: string | null, bytes: number, architecture: string, parameters: number, 
/**
 * The dtype most weights have, such as `Q4_K`.
 */
dtype: string, 
/**
 * Tokens; 0: nobody says.
 */
context_length: number, state: ModelState, 
/**
 * Of another server's model.
 */
remote?: RemoteInfo | null, 
/**
 * Files that it consists of.
 */
files: number, 
/**
 * Bytes of all of them.
 */
disk_bytes: number, 
/**
 * Absent: the file can't be read.
 */
fit: ModelFit | null, 
/**
 * It makes vectors of texts and does not answer.
 */
embeds: boolean, 
/**
 * Absent: nobody says; another server has it, or its file was not looked at for it yet.
 */
skills?: ModelSkills | null, };

/**
 * Whether a model runs on this computer.
 */
export type FitVerdict = "runs_well" | "slow" | "wont_fit";

/**
 * What a model takes in memory, in bytes.
 */
export type FitNeeds = { weights: number, 
/**
 * One conversation that fills the context.
 */
context: number, activations: number, vocabulary: number, total: number, };

/**
 * The share of a graphics card.
 */
export type FitCard = { name: string, 
/**
 * What a model may take of its memory; how much other programs hold of it nobody says. Absent: its driver doesn't say.
 */
memory_bytes: number | null, 
/**
 * Layers of the model; absent: not known.
 */
layers: number | null, 
/**
 * Those that would be on the card.
 */
layers_asked: number | null, 
/**
 * Those that fit into its memory; absent: that or the layers' sizes are not known.
 */
layers_fit: number | null, 
/**
 * What the card would hold, and what stays in the computer's memory.
 */
on_card_bytes: number | null, stays_bytes: number | null, };

/**
 * Whether a model runs here, with the numbers.
 */
export type ModelFit = { verdict: FitVerdict, 
/**
 * Worked out from the file itself; else from what is published about it.
 */
exact: boolean, 
/**
 * Tokens of context that this is about.
 */
context: number, 
/**
 * Precision of the context: `f16` …
 */
kv: string, needs: FitNeeds, 
/**
 * Memory that a model can have now, and all there is.
 */
free_bytes: number | null, total_bytes: number | null, 
/**
 * What of it a graphics card would hold; absent: none is asked to.
 */
card: FitCard | null, 
/**
 * The longest context that fits; absent: not even a short one.
 */
longest_context: number | null, 
/**
 * Tokens per second at the beginning of a conversation; absent: this computer's speed is not measured yet.
 */
tok_s: number | null, 
/**
 * The same when the context is full.
 */
tok_s_full: number | null, 
/**
 * A sentence with the numbers that decided.
 */
reason: string, 
/**
 * What its best run here took.
 */
measured: FitMeasured | null, };

/**
 * What a run took, beside what was foretold for that very run.
 */
export type FitMeasured = { tok_s: number, estimated_tok_s: number | null, 
/**
 * What the model took in memory at the end of that run; absent: other models were there.
 */
memory_bytes: number | null, estimated_memory_bytes: number, 
/**
 * Tokens that the conversation held then.
 */
tokens: number, at_ms: number, };

/**
 * What is published of a model that is not here.
 */
export type FitFacts = { 
/**
 * Of all its files of weights.
 */
bytes: number, 
/**
 * Absent: worked out from the size.
 */
parameters?: number | null, 
/**
 * Parameters that a token passes through, where experts are chosen; absent: all.
 */
active_parameters?: number | null, context_length?: number | null, 
/**
 * The format of most weights, such as `q4_k_m`; absent: worked out from bytes and parameters.
 */
dtype?: string | null, };

/**
 * Which model, one of the three; and how it is to be loaded.
 */
export type FitArgs = { 
/**
 * Library id.
 */
id?: string | null, 
/**
 * A file or folder on this computer.
 */
path?: string | null, facts?: FitFacts | null, 
/**
 * Tokens; absent: as the settings say.
 */
context?: number | null, 
/**
 * Precision of the context (`f32`, `f16`, `q8_0`, `q4_0`); absent: as the settings say.
 */
kv?: string | null, };

/**
 * How fast this computer is with weights of one format.
 */
export type SpeedInfo = { format: string, 
/**
 * Gigabytes of weights that one token can pass through in a second.
 */
gb_s: number, };

/**
 * A model of the catalogue, and whether it runs here.
 */
export type OfferFit = { 
/**
 * Of the catalogue.
 */
id: string, facts: FitFacts, fit: ModelFit, };

/**
 * The one model of the catalogue for this computer.
 */
export type Recommendation = { 
/**
 * Of the catalogue.
 */
id: string, reason: string, fit: ModelFit, };

/**
 * How a model that lies elsewhere comes into the library.
 */
export type ImportHow = "link" | "copy" | "move";

export type ImportArgs = { 
/**
 * A GGUF file, the first of a split one, or a folder with safetensors, config.json and tokenizer.json.
 */
path: string, how: ImportHow, };

/**
 * How far an import has come. The last one has `done` equal to `total`, or an error.
 */
export type ImportProgress = { path: string, done_bytes: number, total_bytes: number, error: ErrorInfo | null, };

/**
 * A model that was removed, for as long as it can be had back.
 */
export type RemovedModel = { id: string, name: string, removed_ms: number, 
/**
 * Bytes that are free once it is gone for good; 0: its files were never ours and stay.
 */
disk_bytes: number, };

/**
 * A folder that is looked through for models.
 */
export type ModelFolder = { path: string, source: ModelSource, 
/**
 * Models found in it.
 */
models: number, 
/**
 * Why it can't be read; it stays in the list.
 */
error: ErrorInfo | null, };

/**
 * What the library takes on disk.
 */
export type LibraryUse = { 
/**
 * Largest first.
 */
models: Array<ModelUse>, 
/**
 * Of the files that are the application's own, those removed among them.
 */
owned_bytes: number, 
/**
 * Of removed ones that can still be had back.
 */
removed_bytes: number, 
/**
 * Of the disk that holds the application's folder.
 */
free_bytes: number | null, };

export type ModelUse = { id: string, source: ModelSource, 
/**
 * Of all its files.
 */
disk_bytes: number, 
/**
 * Of what was made of it for quicker loading.
 */
made_bytes: number, };

/**
 * After a look through all folders.
 */
export type Scan = { folders: Array<ModelFolder>, models: Array<ModelEntry>, };

/**
 * What a model was trained for beside talking.
 */
export type Capability = "thinking" | "tools" | "code";

/**
 * A model on offer. Sizes and hashes are not here: the hub says them when a file is fetched.
 */
export type Offer = { id: string, name: string, family: string, 
/**
 * As in the file's `general.architecture`.
 */
architecture: string, 
/**
 * `OWNER/NAME` on the hub.
 */
repository: string, 
/**
 * Pattern of the files' names; several matches are the parts of a split GGUF.
 */
files: string, licence: string, good_at: string, capabilities: Array<Capability>, 
/**
 * Of its files, where the list says so: others are refused if the list is signed.
 */
sha256?: Array<string>, 
/**
 * The trusted key that signed the list it stands in. Null: nobody did.
 */
signed_by: string | null, };

export type HubSort = "trending" | "downloads" | "likes" | "updated";

export type HubSearchArgs = { 
/**
 * Words, `owner/name`, or the address of a model's page. Empty: what is liked most.
 */
query: string, sort?: HubSort | null, 
/**
 * `next` of the page before.
 */
after?: string | null, };

export type HubPage = { 
/**
 * Those of the catalogue first, on the first page. All of them can run here.
 */
models: Array<HubModel>, 
/**
 * For the page after this one.
 */
next: string | null, 
/**
 * The hub could not be asked, and why: these are the catalogue's alone.
 */
offline: ErrorInfo | null, };

export type HubFormat = "gguf" | "safetensors";

/**
 * What a model was trained to read. We give it text alone.
 */
export type Modality = "text" | "text_and_images" | "text_and_sound" | "anything";

export type HubModel = { 
/**
 * `owner/name`
 */
repository: string, format: HubFormat, 
/**
 * As models name it: `llama`, `gemma3` … Null: the hub doesn't say.
 */
architecture: string | null, parameters: number | null, 
/**
 * In tokens.
 */
context_length: number | null, licence: string | null, modality: Modality, 
/**
 * Of the last month.
 */
downloads: number | null, likes: number | null, updated_ms: number | null, 
/**
 * Its licence has to be accepted on its page first.
 */
gated: boolean, 
/**
 * Its page.
 */
url: string, 
/**
 * It can run here. False only for one that was asked for by its name.
 */
runs: boolean, 
/**
 * What the catalogue says of it.
 */
offer: Offer | null, };

export type HubFilesArgs = { 
/**
 * `owner/name`, or an id of the catalogue.
 */
repository: string, 
/**
 * Branch, tag or commit; absent: the newest.
 */
revision?: string | null, };

export type HubFiles = { model: HubModel, 
/**
 * The commit that they are of.
 */
revision: string, 
/**
 * Smallest first.
 */
files: Array<HubFile>, };

/**
 * How much of a model's precision a file keeps.
 */
export type QuantGroup = "small" | "balanced" | "large";

/**
 * One model to fetch: a file, or the parts of one.
 */
export type HubFile = { 
/**
 * The (first) file in the repository. Names it to `download_start`.
 */
path: string, 
/**
 * Files that it consists of.
 */
parts: number, bytes: number, 
/**
 * `Q4_K_M` …
 */
quantisation: string | null, group: QuantGroup, 
/**
 * The catalogue's choice, or else the usual one.
 */
recommended: boolean, trust: Trust, 
/**
 * It is being fetched, or was: the download's id.
 */
download: string | null, };

/**
 * What vouches for a model's bytes.
 */
export type Trust = { "kind": "signed", key: string, } | { "kind": "published" } | { "kind": "unknown" };

export type DownloadStartArgs = { 
/**
 * `owner/name`, or an id of the catalogue.
 */
repository: string, 
/**
 * A `path` of `hub_files`; absent: the recommended one.
 */
path?: string | null, 
/**
 * Branch, tag or commit; absent: the newest.
 */
revision?: string | null, };

export type DownloadCancelArgs = { id: string, 
/**
 * What has arrived stays on the disk, and a later download goes on from there.
 */
keep_part: boolean, };

export type DownloadState = { "state": "queued" } | { "state": "downloading" } | { "state": "paused", reason: ErrorInfo | null, } | { "state": "waiting_for_network", error: ErrorInfo, } | { "state": "verifying", fraction: number, } | { "state": "failed", error: ErrorInfo, } | { "state": "done", model: string, };

export type Download = { id: string, repository: string, 
/**
 * The (first) file in the repository.
 */
path: string, 
/**
 * Files that it consists of.
 */
parts: number, 
/**
 * Arrived and written.
 */
bytes: number, total: number, 
/**
 * Came over the network, what had to be fetched twice included.
 */
fetched: number, 
/**
 * Bytes per second, of the last seconds.
 */
speed: number, 
/**
 * Seconds that it will take at that speed; null: nobody knows.
 */
eta_s: number | null, state: DownloadState, 
/**
 * Something the user should know though nothing failed: the publisher changed the file and it began anew …
 */
notice: ErrorInfo | null, trust: Trust, created_ms: number, };

export type ModelVerified = { id: string, trust: Trust, files: Array<FileVerified>, 
/**
 * No file is different from what it was.
 */
intact: boolean, };

export type FileVerified = { path: string, bytes: number, 
/**
 * As it is now.
 */
sha256: string, 
/**
 * As it was recorded. Null: nothing was, and it has been recorded now.
 */
recorded: string | null, };

/**
 * What a server is, by what it calls itself.
 */
export type ServerKind = "inglenook" | "vllm" | "sglang" | "llama_cpp" | "ollama" | "open_ai" | "other";

/**
 * How a server's key is found.
 */
export type EndpointKey = { "type": "none" } | { "type": "environment", variable: string, } | { "type": "kept" } | { "type": "keychain" };

/**
 * Where a key that is given is kept.
 */
export type KeyPlace = "keychain" | "file";

/**
 * Where the hub's token is found.
 */
export type TokenPlace = "environment" | "keychain" | "file" | "hub_file";

/**
 * Who the hub is told that we are.
 */
export type HubToken = { 
/**
 * Absent: nobody.
 */
place: TokenPlace | null, 
/**
 * Where one that is given would be kept.
 */
keeps: KeyPlace, };

export type HubTokenArgs = { 
/**
 * Empty: the one that was given here is forgotten.
 */
token: string, };

export type EndpointModel = { 
/**
 * As its server calls it.
 */
id: string, 
/**
 * Tokens; 0: the server doesn't say.
 */
context_length: number, };

/**
 * Whether a server answers.
 */
export type EndpointHealth = { "state": "unknown" } | { "state": "up" } | { "state": "down", error: ErrorInfo, };

/**
 * A server that answers.
 */
export type EndpointInfo = { id: string, 
/**
 * Several may share one; its models are called `name/model`.
 */
name: string, 
/**
 * Base address, such as `http://192.168.1.20:8000/v1`.
 */
url: string, 
/**
 * For people: the host, with its port where it isn't the usual one.
 */
host: string, 
/**
 * What is asked of it leaves this machine.
 */
leaves_machine: boolean, 
/**
 * What goes there can be read on its way.
 */
is_readable: boolean, key: EndpointKey, enabled: boolean, server: ServerKind, 
/**
 * As they were listed last.
 */
models: Array<EndpointModel>, health: EndpointHealth, };

/**
 * What a model of another server is, beside what every model is.
 */
export type RemoteInfo = { 
/**
 * The endpoints' name.
 */
endpoint: string, hosts: Array<string>, leaves_machine: boolean, 
/**
 * A sentence for people: where their words go.
 */
note: string, };

export type EndpointAddArgs = { name: string, url: string, 
/**
 * A key to be kept.
 */
key?: string | null, 
/**
 * The environment variable that holds it instead.
 */
key_variable?: string | null, };

/**
 * What is absent stays as it is.
 */
export type EndpointUpdateArgs = { id: string, name?: string | null, url?: string | null, 
/**
 * A key to be kept; empty: none any more.
 */
key?: string | null, key_variable?: string | null, enabled?: boolean | null, };

/**
 * A plugin, and what it brings.
 */
export type PluginInfo = { 
/**
 * The name of its folder.
 */
folder: string, name: string, version: string, description: string, 
/**
 * For people: the name of each, and what is started or asked.
 */
servers: Array<string>, presets: Array<string>, templates: Array<string>, models: Array<string>, enabled: boolean, 
/**
 * Its manifest is another one than when it was switched on.
 */
changed: boolean, 
/**
 * Why it can't be read.
 */
error: ErrorInfo | null, };

export type PluginSwitchArgs = { 
/**
 * Of its folder.
 */
name: string, enabled: boolean, };

/**
 * How a server of tools is reached, in the form that many programs share (`mcpServers`): by a command, or by an
 * address.
 */
export type ToolServerSpec = { command?: string | null, args?: Array<string>, 
/**
 * For the command. Values are kept encrypted and never shown again.
 */
env?: { [key in string]: string }, cwd?: string | null, url?: string | null, 
/**
 * For the address. As `env`.
 */
headers?: { [key in string]: string }, };

/**
 * Whether a server's tools can be called.
 */
export type ToolServerState = { "state": "idle" } | { "state": "starting" } | { "state": "ready" } | { "state": "failed", error: ErrorInfo, };

/**
 * A server of tools.
 */
export type ToolServerInfo = { id: string, name: string, 
/**
 * The command line or the address, for people.
 */
place: string, 
/**
 * Values of `env` and `headers` are empty: they are kept encrypted.
 */
spec: ToolServerSpec, enabled: boolean, state: ToolServerState, 
/**
 * As they were listed last.
 */
tools: Array<ToolInfo>, 
/**
 * All its tools run without asking.
 */
allowed: boolean, 
/**
 * What is asked of it leaves this machine, as far as is known.
 */
leaves_machine: boolean, 
/**
 * The plugin that brought it.
 */
plugin: string | null, };

/**
 * Which tools of a server are called without asking.
 */
export type ToolInfo = { 
/**
 * As its server calls it.
 */
name: string, title: string, description: string, 
/**
 * The model is told of it.
 */
enabled: boolean, 
/**
 * It runs without asking.
 */
allowed: boolean, 
/**
 * By what its server says.
 */
read_only: boolean, };

export type ToolServerAddArgs = { name: string, spec: ToolServerSpec, };

/**
 * What is absent stays as it is.
 */
export type ToolServerUpdateArgs = { id: string, name?: string | null, enabled?: boolean | null, 
/**
 * An empty value of `env` or `headers` stays as it is kept.
 */
spec?: ToolServerSpec | null, };

/**
 * Of a server as a whole, or of one of its tools.
 */
export type ToolPermitArgs = { id: string, 
/**
 * Absent: all of them.
 */
tool?: string | null, 
/**
 * It runs without asking.
 */
allowed?: boolean | null, 
/**
 * The model is told of it.
 */
enabled?: boolean | null, };

/**
 * What a pasted configuration became.
 */
export type ToolServersImported = { added: Array<ToolServerInfo>, 
/**
 * Why others were not.
 */
refused: Array<ErrorInfo>, };

export type ToolDecision = "allow_once" | "allow_tool" | "allow_server" | "deny";

export type ToolDecideArgs = { 
/**
 * The answer with the call.
 */
message: string, 
/**
 * Of the call.
 */
call: string, decision: ToolDecision, };

/**
 * Something that a server offers to be read.
 */
export type ToolResource = { uri: string, name: string, description: string, 
/**
 * Such as `text/markdown`, where its server says so.
 */
kind: string | null, bytes: number | null, };

/**
 * As `ToolResource`, where the words in braces are the reader's to fill in.
 */
export type ToolResourceTemplate = { 
/**
 * Such as `note://{name}`.
 */
template: string, name: string, description: string, kind: string | null, };

/**
 * All that a server offers to be read.
 */
export type ToolResources = { resources: Array<ToolResource>, templates: Array<ToolResourceTemplate>, };

export type ToolResourceArgs = { 
/**
 * Of the server.
 */
id: string, uri: string, };

/**
 * A question that a server has words for.
 */
export type ToolPrompt = { 
/**
 * What it is asked for by.
 */
name: string, 
/**
 * What people call it.
 */
title: string, description: string, arguments: Array<ToolPromptArgument>, };

/**
 * Something that whoever asks has to say.
 */
export type ToolPromptArgument = { name: string, title: string, description: string, required: boolean, };

export type ToolPromptArgs = { 
/**
 * Of the server.
 */
id: string, name: string, 
/**
 * By name.
 */
arguments: { [key in string]: string }, };

export type ToolPromptText = { text: string, };

/**
 * What a connection was made for.
 */
export type ConnectionPurpose = "answer" | "model_list" | "count" | "search" | "download" | "catalogue" | "tool";

/**
 * One connection to elsewhere. Never what was said.
 */
export type ConnectionInfo = { at_ms: number, 
/**
 * With its port, where it isn't the usual one.
 */
host: string, 
/**
 * Absent: of another version of this program.
 */
purpose: ConnectionPurpose | null, 
/**
 * Bytes, of what was said: encryption and headers come on top.
 */
sent: number, received: number, };

export type ConnectionsArgs = { 
/**
 * How many of the newest; absent: a thousand.
 */
limit?: number | null, };

/** Every use case: what it takes and what it gives. */
export type Calls = {
  app_info: { args: NoArgs; result: AppInfo };
  conversations_list: { args: NoArgs; result: Array<ConversationSummary> };
  conversation_get: { args: IdArgs; result: Conversation };
  conversation_rename: { args: RenameArgs; result: ConversationSummary };
  conversation_delete: { args: IdArgs; result: null };
  conversation_restore: { args: IdArgs; result: ConversationSummary };
  conversation_set_model: { args: SetModelArgs; result: ConversationSummary };
  attachment_add: { args: AttachArgs; result: Attachment };
  attachment_add_path: { args: PathArgs; result: Attachment };
  attachment_remove: { args: IdArgs; result: null };
  attachment_text: { args: AttachmentTextArgs; result: AttachmentText };
  conversation_set_compression: { args: SetCompressionArgs; result: null };
  conversation_compact: { args: IdArgs; result: CompactionInfo };
  conversation_undo_compaction: { args: IdArgs; result: Conversation };
  conversation_options: { args: SetOptionsArgs; result: ConversationSummary };
  conversation_pin: { args: PinArgs; result: ConversationSummary };
  conversation_move: { args: MoveArgs; result: ConversationSummary };
  conversation_forget: { args: IdArgs; result: null };
  trash_list: { args: NoArgs; result: Array<ConversationSummary> };
  trash_empty: { args: NoArgs; result: Count };
  folders_list: { args: NoArgs; result: Array<Folder> };
  folder_add: { args: FolderAddArgs; result: Folder };
  folder_rename: { args: FolderNameArgs; result: Folder };
  folder_move: { args: FolderMoveArgs; result: Folder };
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
  answer_edit: { args: EditArgs; result: ConversationSummary };
  message_choose: { args: ChooseArgs; result: ConversationSummary };
  message_fork: { args: MessageArgs; result: ConversationSummary };
  message_delete: { args: MessageArgs; result: ConversationSummary };
  message_restore: { args: MessageArgs; result: ConversationSummary };
  message_forget: { args: MessageArgs; result: ConversationSummary };
  message_tokens: { args: MessageArgs; result: Array<Looked> };
  message_pick: { args: PickArgs; result: TurnStarted };
  text_scan: { args: TextArgs; result: Array<Finding> };
  send: { args: SendArgs; result: TurnStarted };
  temporary_send: { args: TemporaryArgs; result: TurnArgs };
  draft_count: { args: DraftArgs; result: DraftCount };
  context_parts: { args: DraftArgs; result: ContextParts };
  retry: { args: RetryArgs; result: TurnStarted };
  turn_cancel: { args: TurnArgs; result: null };
  conversation_prefetch: { args: IdArgs; result: null };
  checkpoint_save: { args: CheckpointArgs; result: CheckpointInfo };
  checkpoints_list: { args: CheckpointsArgs; result: Array<CheckpointInfo> };
  checkpoint_restore: { args: IdArgs; result: ConversationSummary };
  checkpoint_remove: { args: IdArgs; result: null };
  kv_stats: { args: NoArgs; result: KvInfo };
  machine_memory: { args: NoArgs; result: MemoryInfo };
  server_state: { args: NoArgs; result: ServerState };
  profile: { args: NoArgs; result: ProfileInfo };
  profile_switch: { args: ProfileSwitchArgs; result: ProfileInfo };
  profile_trace: { args: ProfileTraceArgs; result: Exported };
  models_list: { args: NoArgs; result: Array<ModelEntry> };
  model_add: { args: PathArgs; result: ModelEntry };
  model_verify: { args: IdArgs; result: ModelVerified };
  hub_search: { args: HubSearchArgs; result: HubPage };
  hub_files: { args: HubFilesArgs; result: HubFiles };
  hub_token: { args: NoArgs; result: HubToken };
  hub_token_set: { args: HubTokenArgs; result: HubToken };
  download_start: { args: DownloadStartArgs; result: Download };
  download_pause: { args: IdArgs; result: Download };
  download_resume: { args: IdArgs; result: Download };
  download_cancel: { args: DownloadCancelArgs; result: null };
  download_list: { args: NoArgs; result: Array<Download> };
  presets_list: { args: NoArgs; result: Array<Preset> };
  preset_save: { args: PresetArgs; result: Preset };
  preset_remove: { args: IdArgs; result: null };
  preset_export: { args: PresetExportArgs; result: Exported };
  preset_import: { args: TextArgs; result: Preset };
  model_settings: { args: IdArgs; result: Array<SettingRow> };
  model_setting_set: { args: ModelSettingArgs; result: Array<SettingRow> };
  model_unload: { args: IdArgs; result: null };
  endpoint_list: { args: NoArgs; result: Array<EndpointInfo> };
  endpoint_add: { args: EndpointAddArgs; result: EndpointInfo };
  endpoint_test: { args: IdArgs; result: EndpointInfo };
  endpoint_update: { args: EndpointUpdateArgs; result: EndpointInfo };
  endpoint_remove: { args: IdArgs; result: null };
  tool_servers_list: { args: NoArgs; result: Array<ToolServerInfo> };
  tool_server_add: { args: ToolServerAddArgs; result: ToolServerInfo };
  tool_server_update: { args: ToolServerUpdateArgs; result: ToolServerInfo };
  tool_server_test: { args: IdArgs; result: ToolServerInfo };
  tool_server_remove: { args: IdArgs; result: null };
  tool_server_restore: { args: IdArgs; result: ToolServerInfo };
  tool_servers_import: { args: TextArgs; result: ToolServersImported };
  tool_permit: { args: ToolPermitArgs; result: ToolServerInfo };
  tool_decide: { args: ToolDecideArgs; result: null };
  tool_resources: { args: IdArgs; result: ToolResources };
  tool_resource_attach: { args: ToolResourceArgs; result: Attachment };
  tool_prompts: { args: IdArgs; result: Array<ToolPrompt> };
  tool_prompt: { args: ToolPromptArgs; result: ToolPromptText };
  tool_stop: { args: MessageArgs; result: null };
  plugins_list: { args: NoArgs; result: Array<PluginInfo> };
  plugin_switch: { args: PluginSwitchArgs; result: Array<PluginInfo> };
  connections_list: { args: ConnectionsArgs; result: Array<ConnectionInfo> };
  model_fit: { args: FitArgs; result: ModelFit };
  catalog_fits: { args: NoArgs; result: Array<OfferFit> };
  model_recommend: { args: NoArgs; result: Recommendation | null };
  machine_measure: { args: NoArgs; result: Array<SpeedInfo> };
  model_remove: { args: IdArgs; result: RemovedModel };
  model_restore: { args: IdArgs; result: ModelEntry };
  models_removed: { args: NoArgs; result: Array<RemovedModel> };
  models_purge: { args: NoArgs; result: Count };
  models_scan: { args: NoArgs; result: Scan };
  model_folders: { args: NoArgs; result: Array<ModelFolder> };
  model_folder_add: { args: PathArgs; result: Scan };
  model_folder_remove: { args: PathArgs; result: null };
  model_import: { args: ImportArgs; result: ModelEntry };
  model_import_cancel: { args: PathArgs; result: null };
  library_use: { args: NoArgs; result: LibraryUse };
  settings_list: { args: NoArgs; result: Array<SettingRow> };
  settings_set: { args: SettingArgs; result: SettingRow };
  settings_reset: { args: KeyArgs; result: SettingRow };
};
