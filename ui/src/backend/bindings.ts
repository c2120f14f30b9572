// Generated from src-tauri/crates/contract by `make types`. Do not edit.

/**
 * The program's version, folders and processor.
 */
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
 * An action that the user can choose.
 */
action?: ErrorAction, };

/**
 * The format of an attached file. Documents are office texts, books and web pages, read as Markdown like spreadsheets and
 * presentations.
 */
export type AttachmentKind = "text" | "markdown" | "code" | "csv" | "pdf" | "image" | "document" | "spreadsheet" | "presentation";

/**
 * A file of a draft or message, already read.
 */
export type Attachment = { id: string, name: string, kind: AttachmentKind, 
/**
 * Size of the original file.
 */
bytes: number, 
/**
 * Parts that a reader may overlook.
 */
findings: Array<Finding>, 
/**
 * The model got all of it; else the matching passages. Absent: not sent.
 */
whole?: boolean, 
/**
 * Tokens of the whole file, by that model's count. Absent: not sent.
 */
tokens?: number, 
/**
 * The token count is an estimate.
 */
is_about?: boolean, 
/**
 * It came from the project that the conversation began in.
 */
from_project?: boolean, 
/**
 * The guessed encoding.
 */
guessed?: string, 
/**
 * Of an image whose record is there.
 */
image?: ImageInfo, 
/**
 * Of a PDF with scanned pages that has not been sent.
 */
scanned?: ScannedPages, };

/**
 * An image as lists show it.
 */
export type ImageInfo = { 
/**
 * Pixels per row.
 */
width: number, 
/**
 * Rows of pixels.
 */
height: number, 
/**
 * A small copy, as a data URL.
 */
thumbnail: string, };

/**
 * Pages of a PDF that are images without text.
 */
export type ScannedPages = { 
/**
 * Those that a model which sees is shown.
 */
images: number, 
/**
 * Those that are too many, or damaged.
 */
left_out: number, 
/**
 * No page has text.
 */
is_all: boolean, };

/**
 * The original of an image.
 */
export type AttachmentImage = { 
/**
 * A data URL.
 */
url: string, 
/**
 * Pixels per row.
 */
width: number, 
/**
 * Rows of pixels.
 */
height: number, };

/**
 * A file's text, or the excerpt of it that is shown at once.
 */
export type AttachmentText = { attachment: Attachment, text: string, 
/**
 * Byte offset of the excerpt in the whole text.
 */
start: number, 
/**
 * Bytes of the whole text.
 */
total: number, };

/**
 * Requests an excerpt of an attachment's text.
 */
export type AttachmentTextArgs = { id: string, 
/**
 * A byte offset that the excerpt contains; absent: 0.
 */
at?: number | null, };

/**
 * The token cost of a draft's file.
 */
export type AttachmentCost = { id: string, 
/**
 * Tokens that the model would get.
 */
tokens: number, 
/**
 * Of all of it.
 */
tokens_whole: number, 
/**
 * It fits whole; else it is searched for passages that match the draft.
 */
whole: boolean, };

/**
 * Attaches a file's bytes.
 */
export type AttachArgs = { name: string, 
/**
 * The file's bytes.
 */
base64: string, };

/**
 * A file or passage that an answer could draw on.
 */
export type Citation = { 
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
 * Byte range in its text.
 */
start: number, end: number, 
/**
 * From 1.
 */
first_line: number, last_line: number, 
/**
 * From 1, if it has pages.
 */
page?: number, };

/**
 * A conversation as lists show it.
 */
export type ConversationSummary = { id: string, title: string, 
/**
 * Library id of the model that answers here.
 */
model: string, created_ms: number, updated_ms: number, 
/**
 * The turn in progress.
 */
active_turn: string | null, 
/**
 * Its folder.
 */
folder: string | null, pinned: boolean, 
/**
 * When it was moved to the trash.
 */
deleted_ms: number | null, 
/**
 * The most recently used one has the greatest value, whatever the clock says.
 */
activity: number, 
/**
 * Grows with every change in it.
 */
revision: number, };

/**
 * A conversation with the messages of its active branch.
 */
export type Conversation = { summary: ConversationSummary, 
/**
 * The active branch, root first.
 */
messages: Array<Message>, options: ConversationOptions, 
/**
 * The latest compaction: earlier messages are left out or summarised.
 */
compaction: CompactionInfo | null, 
/**
 * Strategy when it is longer than the context. Absent: as the setting says.
 */
compression: CompactionStrategy | null, };

/**
 * Strategy for conversations longer than the context.
 */
export type CompactionStrategy = "off" | "window" | "summary" | "attention";

/**
 * The extent of a compaction: messages up to `until` stay, but the model doesn't see them.
 */
export type CompactionInfo = { 
/**
 * The last message hidden from the model.
 */
until: string, strategy: CompactionStrategy, 
/**
 * The summary that replaces them for the model.
 */
summary: string | null, 
/**
 * Of the prompt.
 */
tokens_before: number, tokens_after: number, created_ms: number, };

/**
 * The author of a message.
 */
export type Role = "system" | "user" | "assistant";

/**
 * How far a message has come.
 */
export type MessageState = "streaming" | "complete" | "stopped" | "interrupted" | "failed";

/**
 * A message of a conversation's tree.
 */
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
 * Files and passages that the model got with the question.
 */
sources: Array<Citation>, created_ms: number, 
/**
 * This message is version `version` of `versions` under its parent, counted from 1.
 */
version: number, versions: number, };

/**
 * A function that the model wants called.
 */
export type ToolCall = { id: string, name: string, 
/**
 * A JSON object; the beginning of one where the answer was cut.
 */
arguments: string, 
/**
 * Absent: the call is not ours to run, or not yet processed.
 */
run?: ToolRun, };

/**
 * The run of a tool call.
 */
export type ToolRun = { 
/**
 * Id and name of its server; empty if no server has such a tool.
 */
server: string, server_name: string, 
/**
 * The server's name for it.
 */
tool: string, state: ToolRunState, 
/**
 * The result as the model sees it.
 */
result: string, 
/**
 * Characters of the result that were left out.
 */
cut: number, duration_ms: number, 
/**
 * Parts of the result that a reader may overlook.
 */
findings: Array<Finding>, 
/**
 * The limit of rounds is reached: the user is asked whatever was allowed before.
 */
at_limit: boolean, };

/**
 * The state of a tool call.
 */
export type ToolRunState = "asking" | "running" | "done" | "failed" | "denied" | "stopped";

/**
 * Arguments of calls that take none.
 */
export type NoArgs = Record<symbol, never>;

/**
 * Names an object by its id.
 */
export type IdArgs = { id: string, };

/**
 * Renames a conversation.
 */
export type RenameArgs = { id: string, title: string, };

/**
 * Sets the model of a conversation.
 */
export type SetModelArgs = { id: string, 
/**
 * Library id.
 */
model: string, };

/**
 * Sets the compaction strategy of a conversation.
 */
export type SetCompressionArgs = { id: string, 
/**
 * Absent: as the setting says.
 */
strategy?: CompactionStrategy | null, };

/**
 * Repeats the last turn of a conversation.
 */
export type RetryArgs = { conversation: string, };

/**
 * Names a turn.
 */
export type TurnArgs = { turn: string, };

/**
 * Carries a text.
 */
export type TextArgs = { text: string, };

/**
 * Something in a text that a reader may overlook.
 */
export type Finding = { "type": "hidden", 
/**
 * Position of the first, in characters.
 */
at: number, 
/**
 * Number of such characters.
 */
count: number, 
/**
 * Code points such as `U+202E`, each once.
 */
names: Array<string>, } | { "type": "instruction", 
/**
 * Position of its start, in characters.
 */
at: number, 
/**
 * The beginning of the text.
 */
quote: string, } | { "type": "unreadable", 
/**
 * Of all letters.
 */
percent: number, };

/**
 * Names a file or folder on disk.
 */
export type PathArgs = { 
/**
 * A GGUF file, or a folder with safetensors, config.json and tokenizer.json.
 */
path: string, };

/**
 * Sets a setting.
 */
export type SettingArgs = { key: string, 
/**
 * `null` if the setting may be absent.
 */
value: unknown, };

/**
 * Names a setting.
 */
export type KeyArgs = { key: string, };

/**
 * Sends a message.
 */
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
 * The folder that a new conversation lies in; where it is a project, what is absent here is as the project says, and
 * its files go with the message. An existing conversation stays where it is.
 */
folder?: string | null, 
/**
 * Options of a new conversation from its first message on; an existing one keeps its own.
 */
options?: ConversationOptions | null, 
/**
 * As `options`.
 */
compression?: CompactionStrategy | null, };

/**
 * A draft whose token cost is counted.
 */
export type DraftArgs = { 
/**
 * Absent: a new conversation.
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
 * The folder that a new conversation will lie in; an existing one stays where it is.
 */
folder?: string | null, 
/**
 * Options that the new conversation will have; an existing one has its own.
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
 * The model supports switching reasoning on and off.
 */
can_think_or_not: boolean, 
/**
 * The model supports effort levels, such as `low`.
 */
has_efforts?: boolean, 
/**
 * The count is an estimate: the vocabulary is elsewhere.
 */
is_about?: boolean, 
/**
 * Expected time until the first token, by what this model took before. Absent: unknown.
 */
first_token_ms?: number, 
/**
 * Scanned pages of the project's files that the model is not shown. Absent: none.
 */
hidden_pages?: HiddenPages, 
/**
 * Of each file of the draft.
 */
attachments: Array<AttachmentCost>, };

/**
 * Scanned pages of a project's files that a prompt leaves out.
 */
export type HiddenPages = { count: number, reason: HiddenPagesReason, };

/**
 * Why pages are left out.
 */
export type HiddenPagesReason = "no_room" | "unseen";

/**
 * The parts of a prompt before the draft, in tokens. The rest of `before` is messages.
 */
export type ContextParts = { 
/**
 * The whole prompt without the draft; 0 for a new conversation.
 */
before: number, system: number, 
/**
 * Descriptions of the offered tools.
 */
tools: number, 
/**
 * Files of earlier messages, as far as the model sees them, and of the project of a new conversation.
 */
files: number, 
/**
 * The notes of the memory page; absent: none.
 */
memory?: MemoryShare, 
/**
 * What of it came from the conversation's project.
 */
project?: ProjectShare, };

/**
 * A turn that has begun, with the ids of its messages.
 */
export type TurnStarted = { turn: string, conversation: string, user_message: string, assistant_message: string, };

/**
 * One step of a turn. Sequence numbers start at 1 and have no gaps; any watcher can replay them.
 */
export type TurnEvent = { seq: number, turn: string, kind: TurnEventKind, };

/**
 * The content of a turn event.
 */
export type TurnEventKind = { "type": "queued", position: number, } | { "type": "loading", fraction: number, } | { "type": "prefill", done: number, total: number, } | { "type": "compacting", messages: number, } | { "type": "compacted", compaction: CompactionInfo, } | { "type": "logprobs", tokens: Array<TokenAlternatives>, } | { "type": "text", text: string, ids: Array<number>, } | { "type": "reasoning", text: string, ids: Array<number>, } | { "type": "revised", text: string, reasoning: string, } | { "type": "tool_call", call: ToolCall, } | { "type": "notice", error: ErrorInfo, } | { "type": "done", stats: TurnStats, } | { "type": "failed", error: ErrorInfo, };

/**
 * Why an answer ended.
 */
export type Finish = "stop" | "tool_calls" | "length" | "cancelled" | "context_full" | "time_up";

/**
 * The figures of an answer: tokens, times and rates.
 */
export type TurnStats = { finish: Finish, prompt_tokens: number, 
/**
 * Prompt tokens that were in the KV cache already.
 */
reused_tokens: number, generated_tokens: number, 
/**
 * Tokens drafted and verified.
 */
drafted_tokens: number, 
/**
 * Drafted tokens that were accepted.
 */
accepted_tokens: number, context_tokens: number, context_limit: number, load_ms: number, ttft_ms: number, prefill_tok_s: number, decode_tok_s: number, 
/**
 * From the first reasoning token to the last; 0 if there is none.
 */
thought_ms?: number, 
/**
 * Tokens of the images that the vision tower saw for this answer. Those that it remembered are not among them.
 */
image_tokens?: number, 
/**
 * How long the tower took, before the prompt was read.
 */
image_ms?: number, 
/**
 * The token counts are estimates.
 */
is_about?: boolean, 
/**
 * The remote host that answered, if any.
 */
answered_by?: string | null, 
/**
 * The stop text of the request that ended it: its place in the list.
 */
stop_index?: number | null, 
/**
 * Its one-off options.
 */
once?: OneOffOptions | null, 
/**
 * What the user guide answered with, where it answered instead of a model.
 */
guide?: GuideReply, };

/**
 * What the user guide answered a message with.
 */
export type GuideReply = { "kind": "article", 
/**
 * Its id.
 */
article: string, 
/**
 * Id of another article that may be meant.
 */
see_also?: string | null, } | { "kind": "small_talk" } | { "kind": "out_of_scope", 
/**
 * Id of the catalogue's model that is recommended here. None: no model fits.
 */
model?: string | null, };

/**
 * The type and range of a setting.
 */
export type SettingKind = { "kind": "number", min: number, max: number, step: number, } | { "kind": "integer", min: number, max: number, 
/**
 * Meaning of the empty field, if the value may be absent.
 */
absent: string | null, } | { "kind": "choice", options: Array<ChoiceOption>, } | { "kind": "toggle" } | { "kind": "text", placeholder: string, } | { "kind": "long_text", placeholder: string, } | { "kind": "prompts" } | { "kind": "keys" } | { "kind": "read_only" };

/**
 * An option of a choice setting.
 */
export type ChoiceOption = { value: string, label: string, };

/**
 * A setting with its value and everything needed to show it.
 */
export type SettingRow = { key: string, section: string, 
/**
 * Group of rows within a section.
 */
group: string, 
/**
 * Takes effect when a model is loaded.
 */
at_load: boolean, label: string, help: string, kind: SettingKind, default: unknown, value: unknown, };

/**
 * Stores a conversation's context under a name.
 */
export type CheckpointArgs = { conversation: string, name: string, };

/**
 * Lists named contexts, of one conversation or all.
 */
export type CheckpointsArgs = { 
/**
 * None: of all conversations.
 */
conversation: string | null, };

/**
 * A named checkpoint of a conversation.
 */
export type CheckpointInfo = { id: string, name: string, conversation: string, 
/**
 * Its last message.
 */
message: string, created_ms: number, 
/**
 * Size of the stored context; 0: none is stored, and it has to be recomputed.
 */
bytes: number, };

/**
 * Memory and disk use of contexts, and cache hits since the worker started.
 */
export type KvInfo = { turns: number, prompt_tokens: number, 
/**
 * Share of prompt tokens that were reused.
 */
hit_rate: number, memory: KvTier, 
/**
 * Memory hits in another conversation's context.
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
 * Pages requantised to fewer bits.
 */
aged_pages: KvPool, };

/**
 * Whether a server of this data folder is listening.
 */
export type ServerState = { "state": "off" } | { "state": "running", ports: Array<number>, } | { "state": "failed", port: number, };

/**
 * The HTTP server of this window.
 */
export type LocalServer = { 
/**
 * The caller may start and stop it: it is the window, not a page that a server shows.
 */
can_control: boolean, 
/**
 * While it listens.
 */
listening: ListeningServer | null, };

/**
 * A server that listens.
 */
export type ListeningServer = { port: number, 
/**
 * Other devices may connect.
 */
for_devices: boolean, 
/**
 * Its address on this computer, such as `http://127.0.0.1:8642`.
 */
url: string, 
/**
 * Its address for other devices. Null: they may not connect, or this computer has no network.
 */
device_url: string | null, 
/**
 * What programs send as `Authorization: Bearer KEY`.
 */
key: string, 
/**
 * The newest requests, the latest first.
 */
requests: Array<ServedRequest>, };

/**
 * A request that a server was sent.
 */
export type ServedRequest = { id: number, at_ms: number, method: string, path: string, 
/**
 * HTTP status; null: it has no answer yet.
 */
status: number | null, 
/**
 * Milliseconds until its answer began.
 */
duration_ms: number, };

/**
 * Main memory as the system reports it. Absent: unknown.
 */
export type MemoryInfo = { 
/**
 * This program and its workers, including mapped model pages, which the system can reclaim.
 */
ours_bytes: number | null, 
/**
 * Still available to other programs.
 */
free_bytes: number | null, total_bytes: number | null, };

/**
 * Size, budget and hits of a tier of the KV cache.
 */
export type KvTier = { bytes: number, budget_bytes: number, hit_tokens: number, };

/**
 * Pages of one allocator.
 */
export type KvPool = { places: number, held: number, 
/**
 * Held by more than one context.
 */
shared: number, 
/**
 * Free share of the pages ever used.
 */
fragmentation: number, };

/**
 * What a model computed for.
 */
export type ProfilePhase = "reading" | "writing";

/**
 * An operation, summed over all layers.
 */
export type ProfileRow = { 
/**
 * "matmul"; "rest": time outside all operations.
 */
op: string, 
/**
 * "attention.q+k+v Q4_K 2048→3072"
 */
what: string, 
/**
 * Computed and timed by a GPU; else by the processor.
 */
on_card: boolean, calls: number, ms: number, 
/**
 * Of the phase's time, between 0 and 1.
 */
share: number, 
/**
 * Bytes read and written by all calls: weights, keys and values once each.
 */
bytes: number, 
/**
 * None: no relevant reads.
 */
gb_s: number | null, };

/**
 * Rows of a phase, slowest first.
 */
export type ProfilePart = { phase: ProfilePhase, ms: number, rows: Array<ProfileRow>, };

/**
 * The profile of one answer, or of several from one batch.
 */
export type ProfiledAnswer = { 
/**
 * Library id of the model.
 */
model: string, 
/**
 * Phases without work are omitted.
 */
parts: Array<ProfilePart>, 
/**
 * Steps beyond the trace's capacity.
 */
n_left_out: number, };

/**
 * The state of profiling, and the last profile.
 */
export type ProfileInfo = { 
/**
 * New answers are measured.
 */
is_on: boolean, 
/**
 * The last measured answer.
 */
answer: ProfiledAnswer | null, };

/**
 * Switches profiling on or off.
 */
export type ProfileSwitchArgs = { on: boolean, };

/**
 * Exports the last trace, as text or to a file.
 */
export type ProfileTraceArgs = { 
/**
 * The file to write. None: it is returned as text.
 */
path?: string, };

/**
 * A token of an answer.
 */
export type TokenAlternatives = { token: TokenShare, 
/**
 * The most likely candidates, best first; may include the token.
 */
others: Array<TokenShare>, };

/**
 * A token and how likely the model found it.
 */
export type TokenShare = { id: number, text: string, 
/**
 * From 0 to 1, before temperature and other sampling.
 */
probability: number, 
/**
 * Natural logarithm of the probability, which may be too small for `probability`.
 */
logprob: number, 
/**
 * The token's own bytes, which may be a part of a character. Only while an answer is generated.
 */
bytes?: Array<number>, };

/**
 * Continues an answer from an alternative token.
 */
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
 * The replacement token.
 */
token: number, };

/**
 * Requests an answer in a temporary chat.
 */
export type TemporaryArgs = { 
/**
 * The whole chat, the question last.
 */
messages: Array<TemporaryMessage>, 
/**
 * Library id; absent: the default model.
 */
model?: string | null, 
/**
 * Its options; absent: as the settings say.
 */
options?: ConversationOptions | null, };

/**
 * A message of a temporary chat.
 */
export type TemporaryMessage = { role: Role, text: string, 
/**
 * Files that go with it, by their ids; they stay as long as the application runs.
 */
attachments?: Array<string>, 
/**
 * An answer's calls, with their results.
 */
tool_calls?: Array<ToolCall>, };

/**
 * Asks for the guide in a language.
 */
export type HelpArgs = { 
/**
 * Code of ISO 639-1; English where the guide does not speak it.
 */
language: string, };

/**
 * Asks for the ids of articles about a question, best first.
 */
export type HelpSearchArgs = { 
/**
 * Code of ISO 639-1; English where the guide does not speak it.
 */
language: string, 
/**
 * A question, or a few words of it.
 */
question: string, };

/**
 * A group of articles.
 */
export type HelpTopic = { heading: string, articles: Array<HelpArticle>, };

/**
 * An article.
 */
export type HelpArticle = { 
/**
 * The same in every language.
 */
id: string, title: string, 
/**
 * Markdown, with the names of settings, keys and commands filled in.
 */
text: string, 
/**
 * Ids of articles to read next.
 */
related: Array<string>, 
/**
 * Places that the article is about.
 */
targets: Array<HelpTarget>, 
/**
 * Error codes that the article explains, or their beginnings, which end in `.` or `_`.
 */
errors: Array<string>, 
/**
 * Keys of the settings that the article names.
 */
settings: Array<string>, };

/**
 * A place that a button under an article opens.
 */
export type HelpTarget = { "kind": "section", key: string, } | { "kind": "setting", key: string, } | { "kind": "command", id: string, };

/**
 * An application event, apart from those of turns.
 */
export type AppEvent = { "type": "conversation_changed", conversation: ConversationSummary, } | { "type": "conversation_removed", id: string, } | { "type": "folder_changed", folder: Folder, } | { "type": "folder_removed", id: string, } | { "type": "model_changed", model: ModelEntry, } | { "type": "model_removed", id: string, } | { "type": "model_import", progress: ImportProgress, } | { "type": "setting_changed", row: SettingRow, } | { "type": "preset_changed", preset: Preset, } | { "type": "preset_removed", id: string, } | { "type": "notes_changed", notes: Array<Note>, } | { "type": "tune_changed", tune: TuneInfo, } | { "type": "tune_removed", id: string, } | { "type": "download_changed", download: Download, } | { "type": "download_removed", id: string, } | { "type": "tool_calls", 
/**
 * Null: a temporary chat, whose answers are named by their turns.
 */
conversation: string | null, message: string, calls: Array<ToolCall>, 
/**
 * They change no further without the user.
 */
over: boolean, 
/**
 * The turn that answers their results.
 */
turn: string | null, } | { "type": "tool_server_changed", server: ToolServerInfo, } | { "type": "tool_server_removed", id: string, } | { "type": "tool_form_opened", form: ToolForm, } | { "type": "tool_form_closed", id: string, } | { "type": "update_changed", update: UpdateInfo, } | { "type": "notice", error: ErrorInfo, };

/**
 * A conversation's own options; an absent one is as the settings say.
 */
export type ConversationOptions = { 
/**
 * Precedes the first message; only the model sees it.
 */
system_prompt: string | null, temperature: number | null, top_k: number | null, top_p: number | null, min_p: number | null, repeat_penalty: number | null, seed: number | null, 
/**
 * Longest answer, in tokens.
 */
max_tokens: number | null, 
/**
 * From -2 to 2.
 */
presence_penalty: number | null, 
/**
 * From -2 to 2.
 */
frequency_penalty: number | null, 
/**
 * DRY and XTC.
 */
samplers: SamplerOptions | null, 
/**
 * Texts that end the answer; they are not part of it.
 */
stop: Array<string> | null, 
/**
 * A JSON schema that the answer follows, as text.
 */
json_schema: string | null, 
/**
 * Whether it reasons, for models that can be switched; as the setting `thinking`.
 */
thinking: string | null, 
/**
 * Reasoning effort, for models with levels; as the setting `reasoning_effort`.
 */
reasoning_effort: string | null, 
/**
 * How many tokens an image may take, in models that see any size. Absent: as the model's own settings say.
 */
image_detail: ImageDetail | null, 
/**
 * Ids of the servers whose tools the model is offered. Absent: as the settings say.
 */
tools: Array<string> | null, 
/**
 * The preset that these options started from.
 */
preset: string | null, 
/**
 * Whether prompts have the notes of the memory page. Absent: as the setting `memory` says.
 */
memory: boolean | null, 
/**
 * The project that they started from, by its folder.
 */
project: string | null, };

/**
 * How many tokens an image may take, in models that let one choose.
 */
export type ImageDetail = "low" | "balanced" | "full";

/**
 * The samplers DRY and XTC, by llama.cpp's names; an absent value is the published one, and both are off without their
 * first.
 */
export type SamplerOptions = { 
/**
 * From 0; 0 turns DRY off.
 */
dry_multiplier: number | null, 
/**
 * From 1.
 */
dry_base: number | null, 
/**
 * Longest repetition without a penalty, in tokens.
 */
dry_allowed_length: number | null, 
/**
 * Recent tokens that are searched; -1: all, 0 turns DRY off.
 */
dry_penalty_last_n: number | null, 
/**
 * Texts that end a repetition.
 */
dry_sequence_breakers: Array<string> | null, 
/**
 * From 0 to 1; 0 turns XTC off.
 */
xtc_probability: number | null, 
/**
 * From 0 to 1.
 */
xtc_threshold: number | null, };

/**
 * Sets a conversation's options.
 */
export type SetOptionsArgs = { id: string, options: ConversationOptions, };

/**
 * Conversation options saved under a name.
 */
export type Preset = { id: string, name: string, options: ConversationOptions, 
/**
 * Strategy for conversations longer than the context. Absent: as the setting says.
 */
compression: CompactionStrategy | null, };

/**
 * Creates or changes a preset.
 */
export type PresetArgs = { 
/**
 * Absent: creates a new one.
 */
id?: string | null, name: string, options: ConversationOptions, compression?: CompactionStrategy | null, };

/**
 * Exports a preset, as text or to a file.
 */
export type PresetExportArgs = { id: string, 
/**
 * The file to write; absent: only the text is returned.
 */
path?: string | null, };

/**
 * Sets a per-model setting.
 */
export type ModelSettingArgs = { 
/**
 * Library id.
 */
id: string, key: string, 
/**
 * Null: as the settings say for all models.
 */
value: unknown, };

/**
 * Edits a message as a new version.
 */
export type EditArgs = { 
/**
 * The message whose new version begins a branch.
 */
message: string, text: string, };

/**
 * Requests another version of an answer.
 */
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
 * Overrides the conversation's options for this answer.
 */
once?: OneOffOptions | null, };

/**
 * Names a message.
 */
export type MessageArgs = { message: string, };

/**
 * Makes a version of a message the active one.
 */
export type ChooseArgs = { message: string, 
/**
 * Index among the sibling versions, counted from 1; absent: the message itself.
 */
version?: number | null, };

/**
 * Pins or unpins a conversation.
 */
export type PinArgs = { id: string, pinned: boolean, };

/**
 * Moves a conversation into a folder.
 */
export type MoveArgs = { id: string, 
/**
 * Null: out of any folder.
 */
folder: string | null, };

/**
 * A folder of conversations.
 */
export type Folder = { id: string, name: string, 
/**
 * The folder it lies in; null: none.
 */
parent: string | null, 
/**
 * New conversations in it begin with its instructions and files.
 */
is_project?: boolean, };

/**
 * Creates a folder.
 */
export type FolderAddArgs = { name: string, 
/**
 * The folder it lies in; absent: none.
 */
parent?: string | null, };

/**
 * Renames a folder.
 */
export type FolderNameArgs = { id: string, name: string, };

/**
 * Moves a folder into another.
 */
export type FolderMoveArgs = { id: string, 
/**
 * Null: out of any folder.
 */
parent: string | null, };

/**
 * The block of a prompt that has the notes.
 */
export type MemoryShare = { tokens: number, 
/**
 * As the model is given it.
 */
text: string, };

/**
 * A note that is part of prompts.
 */
export type Note = { id: string, text: string, 
/**
 * The conversation that the user took it from. It may be gone.
 */
source: string | null, created_ms: number, updated_ms: number, };

/**
 * Adds a note, or changes the text of one.
 */
export type NoteArgs = { 
/**
 * Absent: adds one.
 */
id?: string | null, text: string, 
/**
 * The conversation that a new one is taken from.
 */
source?: string | null, };

/**
 * A folder whose new conversations begin with what it says.
 */
export type Project = { 
/**
 * The folder.
 */
folder: string, 
/**
 * The folder's name.
 */
name: string, 
/**
 * System prompt of new conversations; empty: none.
 */
instructions: string, 
/**
 * The preset that new conversations begin with.
 */
preset: string | null, 
/**
 * Library id of the model of new conversations.
 */
model: string | null, 
/**
 * Whether prompts of new conversations have the notes of the memory page. Null: as the setting `memory` says.
 */
memory: boolean | null, 
/**
 * Go with the first message of new conversations.
 */
files: Array<Attachment>, 
/**
 * Options of new conversations: those of the preset, with the instructions.
 */
options: ConversationOptions, 
/**
 * Strategy of the preset for conversations longer than the context.
 */
compression: CompactionStrategy | null, };

/**
 * Makes a folder a project, or changes what it says. Its files stay.
 */
export type ProjectArgs = { 
/**
 * The folder.
 */
folder: string, instructions?: string, 
/**
 * The preset that new conversations begin with; absent: none.
 */
preset?: string | null, 
/**
 * Library id of the model of new conversations; absent: the default model.
 */
model?: string | null, 
/**
 * Whether prompts of new conversations have the notes of the memory page; absent: as the setting `memory` says.
 */
memory?: boolean | null, };

/**
 * Adds a file's bytes to a project.
 */
export type ProjectFileArgs = { folder: string, name: string, 
/**
 * The file's bytes.
 */
base64: string, };

/**
 * Adds a file of this machine to a project.
 */
export type ProjectPathArgs = { folder: string, path: string, };

/**
 * What a prompt has from the project that its conversation began in.
 */
export type ProjectShare = { folder: string, name: string, 
/**
 * Tokens of its instructions; 0: the conversation has others.
 */
instructions: number, 
/**
 * Tokens of its files; part of those of all files.
 */
files: number, };

/**
 * Options of one answer that differ from its conversation's; absent ones don't.
 */
export type OneOffOptions = { temperature: number | null, top_p: number | null, seed: number | null, 
/**
 * Whether it reasons, for models that can be switched; as the setting `thinking`.
 */
thinking: string | null, 
/**
 * Reasoning effort, for models with levels; as the setting `reasoning_effort`.
 */
effort: string | null, };

/**
 * Searches titles and messages.
 */
export type SearchArgs = { 
/**
 * Prefixes of words; a quoted phrase is matched literally.
 */
query: string, 
/**
 * Absent: 50.
 */
limit?: number | null, };

/**
 * The conversations and messages that match.
 */
export type SearchResult = { 
/**
 * Conversations whose title has all the words.
 */
titles: Array<TitleHit>, 
/**
 * Messages that have all the words, newest first.
 */
messages: Array<MessageHit>, };

/**
 * A conversation whose title matches.
 */
export type TitleHit = { conversation: string, title: string, };

/**
 * A message that matches.
 */
export type MessageHit = { conversation: string, title: string, message: string, role: Role, created_ms: number, 
/**
 * A part of the message, in pieces.
 */
snippet: Array<SnippetPart>, };

/**
 * A piece of a snippet, matching or not.
 */
export type SnippetPart = { text: string, 
/**
 * It matches the query.
 */
hit: boolean, };

/**
 * Number of conversations affected.
 */
export type Count = { count: number, };

/**
 * The format of an export.
 */
export type ExportFormat = "md" | "json";

/**
 * Exports a conversation, or all of them, as text.
 */
export type ExportArgs = { 
/**
 * Null: every conversation.
 */
id: string | null, format: ExportFormat, };

/**
 * Exports a conversation, or all of them, to a file.
 */
export type ExportToArgs = { 
/**
 * Null: every conversation.
 */
id: string | null, format: ExportFormat, path: string, };

/**
 * An exported text and its suggested file name.
 */
export type ExportedFile = { 
/**
 * Suggested file name.
 */
name: string, text: string, };

/**
 * A file name.
 */
export type FileName = { name: string, };

/**
 * A file that was written.
 */
export type SavedFile = { path: string, bytes: number, };

/**
 * Imports a file from its bytes.
 */
export type BytesArgs = { 
/**
 * A file's bytes.
 */
base64: string, };

/**
 * The result of an import.
 */
export type ImportSummary = { conversations: Array<ConversationSummary>, 
/**
 * Number that could not be imported.
 */
failed: number, 
/**
 * The first errors.
 */
failures: Array<ErrorInfo>, };

/**
 * The result of restoring a backup.
 */
export type RestoreSummary = { 
/**
 * Conversations that were missing.
 */
added: number, 
/**
 * Items already here with other messages: the backup's are added next to them.
 */
beside: number, 
/**
 * Conversations that were already identical.
 */
same: number, };

/**
 * What an interface offers besides an error's remedy. Never done without the user.
 */
export type ErrorAction = { "type": "use_model", model: string, };

/**
 * The location of a model's bytes.
 */
export type ModelSource = "built_in" | "file" | "owned" | "hub_cache" | "lm_studio" | "folder" | "remote";

/**
 * Whether a model is loaded.
 */
export type ModelState = { "state": "unloaded" } | { "state": "loading", fraction: number, } | { "state": "ready" } | { "state": "unusable", error: ErrorInfo, };

/**
 * What a model supports besides plain answers, according to its files.
 */
export type ModelSkills = { 
/**
 * It accepts tools.
 */
tools: boolean, thinking: Thinking, 
/**
 * It sees images.
 */
images: boolean, 
/**
 * The detail of images can be chosen: larger ones take more tokens.
 */
image_detail: boolean, };

/**
 * Whether a model reasons before it answers, and how that can be controlled.
 */
export type Thinking = "never" | "always" | "switched" | "graded";

/**
 * A model of the library.
 */
export type ModelEntry = { id: string, name: string, source: ModelSource, path: string | null, bytes: number, architecture: string, parameters: number, 
/**
 * The dtype most weights have, such as `Q4_K`.
 */
dtype: string, 
/**
 * Tokens; 0: unknown.
 */
context_length: number, state: ModelState, 
/**
 * Of another server's model.
 */
remote?: RemoteInfo | null, 
/**
 * Number of its files.
 */
files: number, 
/**
 * Bytes of all of them.
 */
disk_bytes: number, 
/**
 * Absent: the file can't be read, or the model only drafts.
 */
fit: ModelFit | null, 
/**
 * An embedding model, which gives no answers.
 */
embeds: boolean, 
/**
 * An assistant, which drafts for another model and gives no answers.
 */
only_drafts: boolean, 
/**
 * Absent: unknown, because another server has it or its file was not inspected for it.
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
 * The share of a GPU.
 */
export type FitGpu = { name: string, 
/**
 * Memory that a model may take; the share held by other programs is unknown. Absent: the
 * driver doesn't report it.
 */
memory_bytes: number | null, 
/**
 * Layers of the model; absent: unknown.
 */
layers: number | null, 
/**
 * Layers that would be on the GPU.
 */
layers_asked: number | null, 
/**
 * Layers that fit its memory; absent: its memory or the layers' sizes are unknown.
 */
layers_fit: number | null, 
/**
 * Bytes that the GPU would hold, and bytes that stay in system memory.
 */
on_card_bytes: number | null, stays_bytes: number | null, };

/**
 * Whether a model runs here, with the numbers.
 */
export type ModelFit = { verdict: FitVerdict, 
/**
 * Computed from the file itself; else from published figures.
 */
exact: boolean, 
/**
 * Tokens of the assumed context.
 */
context: number, 
/**
 * Precision of the context: `f16` …
 */
kv: string, needs: FitNeeds, 
/**
 * Memory available to a model now, and the total.
 */
free_bytes: number | null, total_bytes: number | null, 
/**
 * The GPU's share; absent: no GPU is requested.
 */
card: FitGpu | null, 
/**
 * The longest context that fits; absent: not even a short one.
 */
longest_context: number | null, 
/**
 * Tokens per second at the start of a conversation; absent: this computer's speed is unmeasured.
 */
tok_s: number | null, 
/**
 * The same with a full context.
 */
tok_s_full: number | null, 
/**
 * A sentence with the decisive numbers.
 */
reason: string, 
/**
 * Its best run here.
 */
measured: FitMeasured | null, };

/**
 * Measured figures of a run, and the estimate for that very run.
 */
export type FitMeasured = { tok_s: number, estimated_tok_s: number | null, 
/**
 * Memory of the model at the end of that run; absent: other models were loaded.
 */
memory_bytes: number | null, estimated_memory_bytes: number, 
/**
 * Tokens of the conversation then.
 */
tokens: number, at_ms: number, };

/**
 * Published figures of a model that is not here.
 */
export type FitFacts = { 
/**
 * Of all its weight files.
 */
bytes: number, 
/**
 * Absent: derived from the size.
 */
parameters?: number | null, 
/**
 * Active parameters per token of a mixture of experts; absent: all.
 */
active_parameters?: number | null, context_length?: number | null, 
/**
 * The format of most weights, such as `q4_k_m`; absent: derived from bytes and parameters.
 */
dtype?: string | null, };

/**
 * A model, given in one of three ways, and its load options.
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
 * Precision of the context (`f32`, `f16`, `q8_0`, `q4_0`, or `q8_0/q4_0` for keys and values); absent: as the settings say.
 */
kv?: string | null, };

/**
 * This computer's speed for weights of one format.
 */
export type SpeedInfo = { format: string, 
/**
 * Gigabytes of weights processed per second.
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
 * The catalogue's best model for this computer.
 */
export type Recommendation = { 
/**
 * Of the catalogue.
 */
id: string, reason: string, fit: ModelFit, 
/**
 * At most one of each kind, from fast to best. The balanced one is the recommendation itself.
 */
choices: Array<ModelChoice>, };

/**
 * A model that is offered as a first one.
 */
export type ModelChoice = { kind: ChoiceKind, 
/**
 * Of the catalogue.
 */
id: string, 
/**
 * As the catalogue calls it.
 */
name: string, 
/**
 * Of the download.
 */
bytes: number, fit: ModelFit, };

/**
 * What speaks for a model.
 */
export type ChoiceKind = "fast" | "balanced" | "best";

/**
 * How a model enters the library.
 */
export type ImportHow = "link" | "copy" | "move";

/**
 * Imports a model into the library.
 */
export type ImportArgs = { 
/**
 * A GGUF file, the first of a split one, or a folder with safetensors, config.json and tokenizer.json.
 */
path: string, how: ImportHow, };

/**
 * Progress of an import. The last one has `done` equal to `total`, or an error.
 */
export type ImportProgress = { path: string, done_bytes: number, total_bytes: number, error: ErrorInfo | null, };

/**
 * What is learned from.
 */
export type TuneData = { "from": "path", path: string, } | { "from": "text", name: string, text: string, } | { "from": "chats", ids: Array<string>, };

/**
 * A run that is asked for. What is absent is as usual.
 */
export type TuneArgs = { 
/**
 * A library id. Only models on this computer can be trained.
 */
model: string, 
/**
 * Letters, digits, `.`, `_` and `-`. The result is called `MODEL+NAME`.
 */
name: string, data: TuneData, 
/**
 * Rank of the adapter's matrices.
 */
rank?: number | null, 
/**
 * Strength of the adapter: its update is divided by the rank and multiplied by this.
 */
alpha?: number | null, 
/**
 * Learning rate after the warm-up.
 */
lr?: number | null, 
/**
 * How often each example is learned.
 */
epochs?: number | null, 
/**
 * Longest example in tokens.
 */
max_tokens?: number | null, 
/**
 * Examples of one step.
 */
step_examples?: number | null, 
/**
 * Determines the first values, the held-out examples and the order.
 */
seed?: number | null, };

/**
 * A stretch of an example.
 */
export type TunePiece = { text: string, 
/**
 * The model learns to write it; else it only reads it.
 */
is_learned: boolean, };

/**
 * An example as the model sees it.
 */
export type TuneExample = { 
/**
 * Line of the data where it starts, from 1.
 */
line: number, pieces: Array<TunePiece>, };

/**
 * An item that is not learned from.
 */
export type TuneSkipped = { 
/**
 * Line of the data where it starts, from 1.
 */
line: number, 
/**
 * Why, as a clause.
 */
reason: string, };

/**
 * Why answers of chats are not learned.
 */
export type TuneLeftOutReason = "replaced" | "unfinished" | "tools" | "files" | "guide";

/**
 * Answers of chats that are not learned.
 */
export type TuneLeftOut = { reason: TuneLeftOutReason, count: number, };

/**
 * What is learned from chats: answers that the user kept or edited.
 */
export type TuneChats = { 
/**
 * Chats with such answers.
 */
chats: number, 
/**
 * Answers that are learned.
 */
answers: number, 
/**
 * Those that are not, by reason.
 */
left_out: Array<TuneLeftOut>, };

/**
 * What a run would learn, and what it would take.
 */
export type TunePreview = { 
/**
 * Examples to learn from.
 */
examples: number, 
/**
 * Examples that are only measured.
 */
held_out: number, 
/**
 * Tokens of the examples to learn from.
 */
tokens: number, 
/**
 * Those of them that the model learns to write.
 */
learned_tokens: number, 
/**
 * Longest example in tokens that is allowed.
 */
max_tokens: number, 
/**
 * Steps of the whole run.
 */
steps: number, 
/**
 * Estimate for the whole run, from a step that was measured on this computer.
 */
seconds: number, 
/**
 * Name of the GPU that computes the products. None: the CPU computes all.
 */
gpu: string | null, 
/**
 * Estimate of the memory that the run needs at most.
 */
memory_bytes: number, free_bytes: number | null, 
/**
 * The first examples.
 */
first: Array<TuneExample>, 
/**
 * Where the examples are chats.
 */
chats: TuneChats | null, n_skipped: number, 
/**
 * The first of the items that are left out.
 */
skipped: Array<TuneSkipped>, };

/**
 * One step of a run.
 */
export type TuneStep = { 
/**
 * From 1.
 */
step: number, 
/**
 * Mean loss of the step's examples, before it.
 */
loss: number, 
/**
 * Mean loss of the held-out examples after it, where it was measured.
 */
held_out: number | null, 
/**
 * Tokens learned from per second.
 */
tok_s: number, 
/**
 * How long the step took.
 */
seconds: number, };

/**
 * How a run ended.
 */
export type TuneReport = { 
/**
 * Loss of the held-out examples before the run. Absent: there are none.
 */
before: number | null, 
/**
 * The same after the run.
 */
after: number | null, 
/**
 * Steps done.
 */
steps: number, 
/**
 * The held-out loss rose, so the run ended before its last step.
 */
stopped_early: boolean, 
/**
 * The held-out loss is higher than before the run.
 */
worse_than_before: boolean, };

/**
 * Where a run stands.
 */
export type TuneState = { "state": "running" } | { "state": "paused" } | { "state": "done", report: TuneReport, } | { "state": "failed", error: ErrorInfo, };

/**
 * A run.
 */
export type TuneInfo = { 
/**
 * Its name.
 */
id: string, 
/**
 * Library id of the model that learns.
 */
model: string, 
/**
 * Name of the data. Empty: it was made of chats.
 */
data: string, 
/**
 * Number of chats that the data was made of.
 */
chats: number | null, state: TuneState, 
/**
 * Steps of the whole run. Absent: it has not begun.
 */
n_steps: number | null, 
/**
 * The last step that was done.
 */
last: TuneStep | null, 
/**
 * Held-out loss before the run.
 */
before: number | null, 
/**
 * Seconds that a running one still takes, by the mean of its steps.
 */
seconds_left: number | null, created_ms: number, 
/**
 * Folder with the adapter.
 */
folder: string, 
/**
 * The id under which the result answers, once it is done.
 */
tuned: string | null, };

/**
 * A held-out prompt with the answers of both models, each always with the most likely token.
 */
export type TuneAnswers = { 
/**
 * Line of the data where the example starts, from 1.
 */
line: number, 
/**
 * The last question, or the beginning of a text.
 */
prompt: string, 
/**
 * What the data continues with.
 */
expected: string, 
/**
 * Answer of the model as it was, cut off if it is long.
 */
base: string, 
/**
 * Answer of the tuned model, cut off if it is long.
 */
tuned: string, };

/**
 * A run with all its steps.
 */
export type TuneDetails = { info: TuneInfo, steps: Array<TuneStep>, 
/**
 * Up to five held-out prompts, answered by both models. Empty until the run is complete.
 */
answers: Array<TuneAnswers>, };

/**
 * A removed model that can still be restored.
 */
export type RemovedModel = { id: string, name: string, removed_ms: number, 
/**
 * Bytes freed by deleting it for good; 0: its files are not ours and stay.
 */
disk_bytes: number, };

/**
 * A folder that is scanned for models.
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
 * The library's disk use.
 */
export type LibraryUse = { 
/**
 * Largest first.
 */
models: Array<ModelUse>, 
/**
 * Of the application's own files, including removed ones.
 */
owned_bytes: number, 
/**
 * Of removed models that can still be restored.
 */
removed_bytes: number, 
/**
 * Of the disk that holds the application's folder.
 */
free_bytes: number | null, };

/**
 * The disk space that a model takes.
 */
export type ModelUse = { id: string, source: ModelSource, 
/**
 * Of all its files.
 */
disk_bytes: number, 
/**
 * Of files derived for faster loading.
 */
made_bytes: number, };

/**
 * The result of scanning all folders.
 */
export type Scan = { folders: Array<ModelFolder>, models: Array<ModelEntry>, };

/**
 * What a model was trained for besides chat.
 */
export type Capability = "thinking" | "tools" | "code" | "images";

/**
 * A catalogue entry. Sizes and hashes come from the hub when a file is downloaded.
 */
export type Offer = { 
/**
 * Id in the catalogue.
 */
id: string, 
/**
 * Display name.
 */
name: string, 
/**
 * Model family.
 */
family: string, 
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
files: string, 
/**
 * Name of the licence.
 */
licence: string, 
/**
 * What it is good at, for people.
 */
good_at: string, 
/**
 * What it was trained for besides chat.
 */
capabilities: Array<Capability>, 
/**
 * Languages that its maker names: codes of two letters, or `multilingual`. Empty: unknown.
 */
languages: Array<string>, 
/**
 * SHA-256 of its files, if listed: others are refused if the catalogue is signed.
 */
sha256?: Array<string>, 
/**
 * The trusted key that signed its catalogue. Null: unsigned.
 */
signed_by: string | null, };

/**
 * The order of search results on the hub.
 */
export type HubSort = "trending" | "downloads" | "likes" | "updated";

/**
 * Searches the hub for models.
 */
export type HubSearchArgs = { 
/**
 * Words, `owner/name`, or the URL of a model's page. Empty: the most liked models.
 */
query: string, sort?: HubSort | null, 
/**
 * `next` of the previous page.
 */
after?: string | null, };

/**
 * A page of search results.
 */
export type HubPage = { 
/**
 * The catalogue's models come first, on the first page. All of them can run here.
 */
models: Array<HubModel>, 
/**
 * Cursor of the next page.
 */
next: string | null, 
/**
 * Why the hub could not be reached: only the catalogue's models are listed.
 */
offline: ErrorInfo | null, };

/**
 * The file format of a model on the hub.
 */
export type HubFormat = "gguf" | "safetensors";

/**
 * Input that a model was trained on. We give it only text.
 */
export type Modality = "text" | "text_and_images" | "text_and_sound" | "anything";

/**
 * A model repository on the hub.
 */
export type HubModel = { 
/**
 * `owner/name`
 */
repository: string, format: HubFormat, 
/**
 * As in model files: `llama`, `gemma3` … Null: the hub doesn't say.
 */
architecture: string | null, parameters: number | null, 
/**
 * In tokens.
 */
context_length: number | null, licence: string | null, 
/**
 * Languages that its page names: codes of two letters, or `multilingual`. Empty: it names none.
 */
languages: Array<string>, modality: Modality, 
/**
 * Of the last month.
 */
downloads: number | null, likes: number | null, updated_ms: number | null, 
/**
 * Its licence must first be accepted on its page.
 */
gated: boolean, 
/**
 * Its page.
 */
url: string, 
/**
 * It can run here. False only for one that was requested by name.
 */
runs: boolean, 
/**
 * Its catalogue entry.
 */
offer: Offer | null, };

/**
 * Lists the files of a repository.
 */
export type HubFilesArgs = { 
/**
 * `owner/name`, or an id of the catalogue.
 */
repository: string, 
/**
 * Branch, tag or commit; absent: the newest.
 */
revision?: string | null, };

/**
 * The model files of a repository at a revision.
 */
export type HubFiles = { model: HubModel, 
/**
 * The commit of the files.
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
 * A downloadable model: a file, or the parts of a split one.
 */
export type HubFile = { 
/**
 * The (first) file in the repository. Names it to `download_start`.
 */
path: string, 
/**
 * Number of its files.
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
 * Id of its current or past download.
 */
download: string | null, };

/**
 * What vouches for a model's bytes.
 */
export type Trust = { "kind": "signed", key: string, } | { "kind": "published" } | { "kind": "unknown" };

/**
 * Starts a download.
 */
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

/**
 * Cancels a download.
 */
export type DownloadCancelArgs = { id: string, 
/**
 * Keeps the partial file, and a later download resumes from it.
 */
keep_part: boolean, };

/**
 * The state of a download.
 */
export type DownloadState = { "state": "queued" } | { "state": "downloading" } | { "state": "paused", reason: ErrorInfo | null, } | { "state": "waiting_for_network", error: ErrorInfo, } | { "state": "verifying", fraction: number, } | { "state": "failed", error: ErrorInfo, } | { "state": "done", model: string, };

/**
 * A download in the queue.
 */
export type Download = { id: string, repository: string, 
/**
 * The (first) file in the repository.
 */
path: string, 
/**
 * Number of its files.
 */
parts: number, 
/**
 * Bytes received and written.
 */
bytes: number, total: number, 
/**
 * Bytes transferred, including repeated ones.
 */
fetched: number, 
/**
 * Bytes per second, over the last seconds.
 */
speed: number, 
/**
 * Estimated seconds left at that speed; null: unknown.
 */
eta_s: number | null, state: DownloadState, 
/**
 * Something the user should know though nothing failed, such as a file that the publisher
 * changed, so that it restarted.
 */
notice: ErrorInfo | null, trust: Trust, created_ms: number, };

/**
 * The result of verifying a model.
 */
export type ModelVerified = { id: string, trust: Trust, files: Array<FileVerified>, 
/**
 * Every file is unchanged.
 */
intact: boolean, };

/**
 * The result of verifying a file.
 */
export type FileVerified = { path: string, bytes: number, 
/**
 * As it is now.
 */
sha256: string, 
/**
 * The recorded hash. Null: there was none, and it has been recorded now.
 */
recorded: string | null, };

/**
 * The kind of server, detected by its own name.
 */
export type ServerKind = "inglenook" | "vllm" | "sglang" | "llama_cpp" | "ollama" | "open_ai" | "other";

/**
 * How a server's key is found.
 */
export type EndpointKey = { "type": "none" } | { "type": "environment", variable: string, } | { "type": "kept" } | { "type": "keychain" };

/**
 * Where a given key is stored.
 */
export type KeyPlace = "keychain" | "file";

/**
 * Where the hub's token is found.
 */
export type TokenPlace = "environment" | "keychain" | "file" | "hub_file";

/**
 * The identity that the hub sees.
 */
export type HubToken = { 
/**
 * Absent: anonymous.
 */
place: TokenPlace | null, 
/**
 * Where a new token would be stored.
 */
keeps: KeyPlace, };

/**
 * Stores the hub token.
 */
export type HubTokenArgs = { 
/**
 * Empty: removes the stored token.
 */
token: string, };

/**
 * A model that an endpoint lists.
 */
export type EndpointModel = { 
/**
 * The server's name for it.
 */
id: string, 
/**
 * Tokens; 0: unknown.
 */
context_length: number, };

/**
 * The health of an endpoint.
 */
export type EndpointHealth = { "state": "unknown" } | { "state": "up" } | { "state": "down", error: ErrorInfo, };

/**
 * A remote model server.
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
 * Requests to it leave this machine.
 */
leaves_machine: boolean, 
/**
 * Its traffic is unencrypted.
 */
is_readable: boolean, key: EndpointKey, enabled: boolean, server: ServerKind, 
/**
 * As last listed, and as typed.
 */
models: Array<EndpointModel>, 
/**
 * Model names that the user typed, since the server lists none.
 */
typed_models: Array<string>, health: EndpointHealth, };

/**
 * What a remote model has beyond the common fields.
 */
export type RemoteInfo = { 
/**
 * The endpoints' name.
 */
endpoint: string, hosts: Array<string>, leaves_machine: boolean, 
/**
 * A connection to one of them is not encrypted.
 */
is_readable: boolean, 
/**
 * A sentence for people: where their text is sent.
 */
note: string, };

/**
 * Adds an endpoint.
 */
export type EndpointAddArgs = { name: string, url: string, 
/**
 * A key to store.
 */
key?: string | null, 
/**
 * The environment variable that holds the key instead.
 */
key_variable?: string | null, 
/**
 * Names of models, for a server that lists none.
 */
models?: Array<string> | null, };

/**
 * Absent fields stay unchanged.
 */
export type EndpointUpdateArgs = { id: string, name?: string | null, url?: string | null, 
/**
 * A key to store; empty: removes it.
 */
key?: string | null, key_variable?: string | null, enabled?: boolean | null, 
/**
 * Replaces the typed names of models.
 */
models?: Array<string> | null, };

/**
 * A plugin, and what it brings.
 */
export type PluginInfo = { 
/**
 * The name of its folder.
 */
folder: string, name: string, version: string, description: string, 
/**
 * For people: each name, with its command or address.
 */
servers: Array<string>, presets: Array<string>, templates: Array<string>, models: Array<string>, enabled: boolean, 
/**
 * Its manifest has changed since it was switched on.
 */
changed: boolean, 
/**
 * Why it can't be read.
 */
error: ErrorInfo | null, };

/**
 * Switches a plugin on or off.
 */
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
 * A tool server.
 */
export type ToolServerInfo = { id: string, name: string, 
/**
 * The command line or the address, for people.
 */
place: string, 
/**
 * Values of `env` and `headers` are empty: they are kept encrypted.
 */
spec: ToolServerSpec, enabled: boolean, state: ToolServerState, sign_in: ToolSignInState, 
/**
 * As last listed.
 */
tools: Array<ToolInfo>, 
/**
 * All its tools run without asking.
 */
allowed: boolean, 
/**
 * Requests to it leave this machine, as far as is known.
 */
leaves_machine: boolean, 
/**
 * The plugin that brought it.
 */
plugin: string | null, };

/**
 * Whether the user is signed in to a server.
 */
export type ToolSignInState = "none" | "needed" | "waiting" | "signed_in";

/**
 * Signs in to a tool server.
 */
export type ToolSignInArgs = { 
/**
 * Of the server.
 */
id: string, 
/**
 * For authorization servers that don't register applications by themselves.
 */
client_id?: string | null, 
/**
 * Kept among the keys and never shown again.
 */
client_secret?: string | null, };

/**
 * A sign-in that waits for the browser.
 */
export type ToolSignInStart = { 
/**
 * To open in a browser on the computer that runs Inglenook.
 */
address: string, };

/**
 * A tool of a server, and its permissions.
 */
export type ToolInfo = { 
/**
 * The server's name for it.
 */
name: string, title: string, description: string, 
/**
 * Whether the model is offered it.
 */
enabled: boolean, 
/**
 * It runs without asking.
 */
allowed: boolean, 
/**
 * According to its server.
 */
read_only: boolean, };

/**
 * Adds a tool server.
 */
export type ToolServerAddArgs = { name: string, spec: ToolServerSpec, };

/**
 * Absent fields stay unchanged.
 */
export type ToolServerUpdateArgs = { id: string, name?: string | null, enabled?: boolean | null, 
/**
 * An empty value of `env` or `headers` keeps the stored one.
 */
spec?: ToolServerSpec | null, };

/**
 * Sets permissions of a server, or of one of its tools.
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
 * Whether the model is offered it.
 */
enabled?: boolean | null, };

/**
 * The result of importing a configuration.
 */
export type ToolServersImported = { added: Array<ToolServerInfo>, 
/**
 * Why the others were refused.
 */
refused: Array<ErrorInfo>, };

/**
 * The user's decision on a tool call.
 */
export type ToolDecision = "allow_once" | "allow_tool" | "allow_server" | "deny";

/**
 * Decides on a pending tool call.
 */
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
 * What a text looks like.
 */
export type ToolTextFormat = "email" | "uri" | "date" | "date_time";

/**
 * One option of a choice.
 */
export type ToolFormOption = { value: string, title: string, };

/**
 * What a field takes.
 */
export type ToolFieldKind = { "kind": "text", format: ToolTextFormat | null, min_chars: number | null, max_chars: number | null, } | { "kind": "number", is_integer: boolean, min: number | null, max: number | null, } | { "kind": "flag" } | { "kind": "choice", options: Array<ToolFormOption>, } | { "kind": "multiple_choice", options: Array<ToolFormOption>, };

/**
 * A field of a form.
 */
export type ToolFormField = { name: string, 
/**
 * What the user knows it by.
 */
label: string, description: string | null, required: boolean, kind: ToolFieldKind, 
/**
 * Taken where the user gives no value.
 */
default: unknown, };

/**
 * A form that waits for the user.
 */
export type ToolForm = { id: string, 
/**
 * Name of the server that asks.
 */
server_name: string, 
/**
 * Why it asks, in its own words.
 */
message: string, fields: Array<ToolFormField>, };

/**
 * What the user does with a form.
 */
export type ToolFormAction = "accept" | "decline" | "cancel";

/**
 * Answers a form.
 */
export type ToolFormAnswerArgs = { 
/**
 * Of the form.
 */
id: string, action: ToolFormAction, 
/**
 * By the name of the field. Fields that are missing take their defaults.
 */
values: Record<string, unknown>, };

/**
 * A resource of a tool server.
 */
export type ToolResource = { uri: string, name: string, description: string, 
/**
 * MIME type such as `text/markdown`, if the server states it.
 */
kind: string | null, bytes: number | null, };

/**
 * Like `ToolResource`, with placeholders in braces.
 */
export type ToolResourceTemplate = { 
/**
 * Such as `note://{name}`.
 */
template: string, name: string, description: string, kind: string | null, };

/**
 * The resources of a tool server.
 */
export type ToolResources = { resources: Array<ToolResource>, templates: Array<ToolResourceTemplate>, };

/**
 * Names a resource of a tool server.
 */
export type ToolResourceArgs = { 
/**
 * Of the server.
 */
id: string, uri: string, };

/**
 * A prompt template of a tool server.
 */
export type ToolPrompt = { 
/**
 * Identifier in requests.
 */
name: string, 
/**
 * Display name.
 */
title: string, description: string, arguments: Array<ToolPromptArgument>, };

/**
 * An argument that the caller has to supply.
 */
export type ToolPromptArgument = { name: string, title: string, description: string, required: boolean, };

/**
 * Fills in a prompt of a tool server.
 */
export type ToolPromptArgs = { 
/**
 * Of the server.
 */
id: string, name: string, 
/**
 * By name.
 */
arguments: { [key in string]: string }, };

/**
 * A prompt's text, filled in.
 */
export type ToolPromptText = { text: string, };

/**
 * The purpose of a connection.
 */
export type ConnectionPurpose = "answer" | "model_list" | "count" | "search" | "download" | "catalogue" | "tool" | "image" | "update";

/**
 * One outgoing connection, without its content.
 */
export type ConnectionInfo = { at_ms: number, 
/**
 * With its port, unless that is the default.
 */
host: string, 
/**
 * Absent: unknown to this version of the program.
 */
purpose: ConnectionPurpose | null, 
/**
 * Bytes of content, without encryption and headers.
 */
sent: number, received: number, };

/**
 * Requests the newest entries of the connection record.
 */
export type ConnectionsArgs = { 
/**
 * Maximum entries; absent: 1000.
 */
limit?: number | null, };

/**
 * How this copy of the program was installed.
 */
export type PackageKind = "app_image" | "deb" | "rpm" | "flatpak" | "mac_app" | "nsis" | "msi" | "source";

/**
 * What this copy of the program does about new versions.
 */
export type UpdateMethod = "replace" | "name" | "no_address" | "not_here";

/**
 * A newer version. Its texts come from the update server.
 */
export type UpdateOffer = { version: string, 
/**
 * When it was published.
 */
published_ms: number | null, 
/**
 * Release notes.
 */
notes: string | null, };

/**
 * Where an update is.
 */
export type UpdatePhase = { "name": "unknown" } | { "name": "checking" } | { "name": "current" } | { "name": "available" } | { "name": "downloading", received_bytes: number, 
/**
 * Absent: the server does not say.
 */
total_bytes: number | null, } | { "name": "ready" } | { "name": "installing" };

/**
 * What is known of newer versions.
 */
export type UpdateInfo = { method: UpdateMethod, package: PackageKind, 
/**
 * Hosts that a check asks, in order.
 */
hosts: Array<string>, 
/**
 * A web page where people find new versions.
 */
page: string | null, phase: UpdatePhase, 
/**
 * Present from `available` on.
 */
offer: UpdateOffer | null, 
/**
 * The last check that had an answer.
 */
checked_ms: number | null, 
/**
 * Why the last download or installation failed.
 */
error: ErrorInfo | null, };

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
  attachment_image: { args: IdArgs; result: AttachmentImage };
  attachment_remove: { args: IdArgs; result: null };
  attachment_text: { args: AttachmentTextArgs; result: AttachmentText };
  conversation_set_compression: { args: SetCompressionArgs; result: null };
  conversation_compact: { args: IdArgs; result: CompactionInfo };
  conversation_undo_compaction: { args: IdArgs; result: Conversation };
  conversation_options: { args: SetOptionsArgs; result: ConversationSummary };
  conversation_pin: { args: PinArgs; result: ConversationSummary };
  conversation_move: { args: MoveArgs; result: ConversationSummary };
  conversation_forget: { args: IdArgs; result: null };
  help_topics: { args: HelpArgs; result: Array<HelpTopic> };
  help_search: { args: HelpSearchArgs; result: Array<string> };
  trash_list: { args: NoArgs; result: Array<ConversationSummary> };
  trash_empty: { args: NoArgs; result: Count };
  folders_list: { args: NoArgs; result: Array<Folder> };
  folder_add: { args: FolderAddArgs; result: Folder };
  folder_rename: { args: FolderNameArgs; result: Folder };
  folder_move: { args: FolderMoveArgs; result: Folder };
  folder_remove: { args: IdArgs; result: null };
  project_get: { args: IdArgs; result: Project | null };
  project_set: { args: ProjectArgs; result: Project };
  project_remove: { args: IdArgs; result: null };
  project_file_add: { args: ProjectFileArgs; result: Project };
  project_file_add_path: { args: ProjectPathArgs; result: Project };
  project_file_remove: { args: IdArgs; result: Project };
  notes_list: { args: NoArgs; result: Array<Note> };
  note_save: { args: NoteArgs; result: Note };
  note_remove: { args: IdArgs; result: null };
  tunes_list: { args: NoArgs; result: Array<TuneInfo> };
  tune_get: { args: IdArgs; result: TuneDetails };
  tune_preview: { args: TuneArgs; result: TunePreview };
  tune_start: { args: TuneArgs; result: TuneInfo };
  tune_pause: { args: IdArgs; result: TuneInfo };
  tune_resume: { args: IdArgs; result: TuneInfo };
  tune_stop: { args: IdArgs; result: TuneInfo };
  tune_remove: { args: IdArgs; result: null };
  export: { args: ExportArgs; result: ExportedFile };
  export_name: { args: ExportArgs; result: FileName };
  export_to: { args: ExportToArgs; result: SavedFile };
  import_file: { args: PathArgs; result: ImportSummary };
  import_bytes: { args: BytesArgs; result: ImportSummary };
  data_backup: { args: PathArgs; result: SavedFile };
  data_restore: { args: PathArgs; result: RestoreSummary };
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
  message_tokens: { args: MessageArgs; result: Array<TokenAlternatives> };
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
  local_server: { args: NoArgs; result: LocalServer };
  local_server_start: { args: NoArgs; result: LocalServer };
  local_server_stop: { args: NoArgs; result: LocalServer };
  local_server_renew_key: { args: NoArgs; result: LocalServer };
  update_info: { args: NoArgs; result: UpdateInfo };
  update_check: { args: NoArgs; result: UpdateInfo };
  update_download: { args: NoArgs; result: UpdateInfo };
  update_cancel: { args: NoArgs; result: UpdateInfo };
  profile: { args: NoArgs; result: ProfileInfo };
  profile_switch: { args: ProfileSwitchArgs; result: ProfileInfo };
  profile_trace: { args: ProfileTraceArgs; result: ExportedFile };
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
  preset_export: { args: PresetExportArgs; result: ExportedFile };
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
  tool_sign_in: { args: ToolSignInArgs; result: ToolSignInStart };
  tool_sign_in_cancel: { args: IdArgs; result: null };
  tool_sign_out: { args: IdArgs; result: ToolServerInfo };
  tool_server_remove: { args: IdArgs; result: null };
  tool_server_restore: { args: IdArgs; result: ToolServerInfo };
  tool_servers_import: { args: TextArgs; result: ToolServersImported };
  tool_permit: { args: ToolPermitArgs; result: ToolServerInfo };
  tool_decide: { args: ToolDecideArgs; result: null };
  tool_forms: { args: NoArgs; result: Array<ToolForm> };
  tool_form_answer: { args: ToolFormAnswerArgs; result: null };
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
