//! The only types that cross an edge: window, HTTP, terminal. TypeScript is generated from them
//! (`bindings.rs`), so a change here is a change of `ui/src/backend/bindings.ts`.
//!
//! Ids are UUIDv7 strings; times are milliseconds since the Unix epoch, UTC.

mod attachments;
mod connections;
mod contexts;
mod downloads;
mod draft;
mod library;
mod look;
mod temporary;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::CompactionMethod;

mod plugins;
mod presets;
mod profile;
mod remote;
mod sending;
mod serving;
mod settings;
mod tools;
mod tree;

pub use attachments::*;
pub use connections::{ConnectionInfo, ConnectionPurpose, ConnectionsArgs};
pub use contexts::{CheckpointArgs, CheckpointInfo, CheckpointsArgs, KvInfo, KvPool, KvTier, MemoryInfo};
pub use downloads::*;
pub use draft::{ContextParts, DraftArgs, DraftCount};
pub use library::*;
pub use look::{Looked, PickArgs, TokenShare};
pub use plugins::*;
pub use presets::*;
pub use profile::*;
pub use remote::*;
pub use sending::SendArgs;
pub use serving::ServerState;
pub use settings::*;
pub use temporary::{TemporaryArgs, TemporaryMessage};
pub use tools::*;
pub use tree::*;

// ---- the application ----

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct AppInfo {
    pub version: String,
    pub data_dir: String,
    pub log_dir: String,
    /// Physical cores of this machine.
    pub cores: u32,
    /// The instruction set level the kernels run at, such as `avx512`.
    pub isa: String,
}

/// What every failure looks like at an edge. `remedy` is a sentence that names the next step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ErrorInfo {
    pub code: String,
    pub message: String,
    pub remedy: String,
    /// What can be done about it at once, if the user wishes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub action: Option<ErrorAction>,
}

// ---- conversations ----

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ConversationSummary {
    pub id: String,
    pub title: String,
    /// Library id of the model that answers here.
    pub model: String,
    #[ts(type = "number")]
    pub created_ms: i64,
    #[ts(type = "number")]
    pub updated_ms: i64,
    /// The turn that is answering right now.
    pub active_turn: Option<String>,
    /// The folder it lies in.
    pub folder: Option<String>,
    pub pinned: bool,
    /// In the trash since then.
    #[ts(type = "number | null")]
    pub deleted_ms: Option<i64>,
    /// The one that was used last has the greatest, whatever the clock says.
    #[ts(type = "number")]
    pub activity: i64,
    /// Grows with everything that changes in it.
    #[ts(type = "number")]
    pub revision: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Conversation {
    pub summary: ConversationSummary,
    /// The active branch, root first.
    pub messages: Vec<Message>,
    pub options: ConversationOptions,
    /// The model is not shown, or not word for word, what comes before.
    pub compaction: Option<CompactionInfo>,
    /// What becomes of it when it is longer than the context. Absent: as the setting says.
    pub compression: Option<CompactionStrategy>,
}

/// What becomes of conversations that are longer than the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum CompactionStrategy {
    /// Nothing: an error says that they are.
    Off,
    /// The oldest messages are left out.
    Window,
    /// The oldest messages are summarised by the model.
    Summary,
    /// The model forgets what it attends to least.
    Attention,
}

impl CompactionStrategy {
    pub fn strategy(self) -> Option<CompactionMethod> {
        match self {
            Self::Off => None,
            Self::Window => Some(CompactionMethod::Window),
            Self::Summary => Some(CompactionMethod::Summary),
            Self::Attention => Some(CompactionMethod::Attention),
        }
    }

    pub fn of(strategy: CompactionMethod) -> Self {
        match strategy {
            CompactionMethod::Window => Self::Window,
            CompactionMethod::Summary => Self::Summary,
            CompactionMethod::Attention => Self::Attention,
        }
    }

    /// As it is kept in the database and in settings.
    pub fn name(self) -> &'static str {
        self.strategy().map_or("off", CompactionMethod::name)
    }

    pub fn of_name(name: &str) -> Option<Self> {
        if name == "off" { Some(Self::Off) } else { CompactionMethod::of_name(name).map(Self::of) }
    }
}

/// How far the conversation is compacted: messages up to `until` stay, but the model is not shown them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct CompactionInfo {
    /// The last message that the model is not shown.
    pub until: String,
    pub strategy: CompactionStrategy,
    /// The summary that the model is given in their place.
    pub summary: Option<String>,
    /// Of the prompt.
    pub tokens_before: u32,
    pub tokens_after: u32,
    #[ts(type = "number")]
    pub created_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    System,
    User,
    Assistant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// Being written now.
    Streaming,
    Complete,
    /// Stopped by the user; what was written stays.
    Stopped,
    /// The program ended while this was being written; what was saved stays.
    Interrupted,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Message {
    pub id: String,
    pub parent: Option<String>,
    pub role: Role,
    /// While `state` is `streaming`: what has been saved so far. A watcher of the turn from sequence
    /// number 0 gets the whole answer again, so it starts from an empty text.
    pub text: String,
    pub reasoning: String,
    /// Tools that the model wants called, in order.
    pub tool_calls: Vec<ToolCall>,
    pub state: MessageState,
    pub error: Option<ErrorInfo>,
    pub model: Option<String>,
    pub stats: Option<TurnStats>,
    /// Files of a question.
    #[serde(default)]
    pub attachments: Vec<Attachment>,
    /// What of files an answer's question gave to the model.
    #[serde(default)]
    pub sources: Vec<Source>,
    #[ts(type = "number")]
    pub created_ms: i64,
    /// This message is version `version` of `versions` under its parent, counted from 1.
    pub version: u32,
    pub versions: u32,
}

/// A function that the model wants called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// A JSON object.
    pub arguments: String,
    /// Absent: it is no call of a tool of ours, or it has not been looked at yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub run: Option<ToolRun>,
}

// ---- what the use cases take (their names and results: `calls.rs`) ----

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct NoArgs {}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct IdArgs {
    pub id: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct RenameArgs {
    pub id: String,
    pub title: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct SetModelArgs {
    pub id: String,
    /// Library id.
    pub model: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct SetCompressionArgs {
    pub id: String,
    /// Absent: as the setting says.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub strategy: Option<CompactionStrategy>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct RetryArgs {
    pub conversation: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct TurnArgs {
    pub turn: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct TextArgs {
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct PathArgs {
    /// A GGUF file, or a folder with safetensors, config.json and tokenizer.json.
    pub path: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct SettingArgs {
    pub key: String,
    /// `null` where the setting may be absent.
    #[ts(type = "unknown")]
    pub value: serde_json::Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct KeyArgs {
    pub key: String,
}

// ---- turns ----

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct TurnStarted {
    pub turn: String,
    pub conversation: String,
    pub user_message: String,
    pub assistant_message: String,
}

/// One step of a turn. Sequence numbers start at 1 and have no gaps; any watcher can replay them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct TurnEvent {
    #[ts(type = "number")]
    pub seq: u64,
    pub turn: String,
    pub kind: TurnEventKind,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TurnEventKind {
    Queued {
        position: u32,
    },
    /// `fraction` from 0 to 1.
    Loading {
        fraction: f32,
    },
    Prefill {
        done: u32,
        total: u32,
    },
    /// So many older messages are being summarised, since they don't fit any more.
    Compacting {
        messages: u32,
    },
    /// The prompt is shown without them.
    Compacted {
        compaction: CompactionInfo,
    },
    Text {
        text: String,
        ids: Vec<u32>,
    },
    Reasoning {
        text: String,
        ids: Vec<u32>,
    },
    ToolCall {
        call: ToolCall,
    },
    /// Something the user should know though nothing failed.
    Notice {
        error: ErrorInfo,
    },
    Done {
        stats: TurnStats,
    },
    Failed {
        error: ErrorInfo,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    Stop,
    /// The model waits for what the tools say.
    ToolCalls,
    Length,
    Cancelled,
    ContextFull,
    /// The limit of time.
    TimeUp,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct TurnStats {
    pub finish: Finish,
    pub prompt_tokens: u32,
    /// Prompt tokens that were in the KV cache already.
    pub reused_tokens: u32,
    pub generated_tokens: u32,
    /// Tokens that were guessed ahead and checked.
    #[serde(default)]
    pub drafted_tokens: u32,
    /// Those of them that came true.
    #[serde(default)]
    pub accepted_tokens: u32,
    pub context_tokens: u32,
    pub context_limit: u32,
    pub load_ms: f64,
    pub ttft_ms: f64,
    pub prefill_tok_s: f64,
    pub decode_tok_s: f64,
    /// From the first token of its reasoning to the last; 0 where it had none.
    #[serde(default)]
    #[ts(optional, as = "Option<f64>")]
    pub thought_ms: f64,
    /// The counts of tokens are estimates.
    #[serde(default)]
    #[ts(optional, as = "Option<bool>")]
    pub is_about: bool,
    /// The host that answered, where it was not this machine.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub answered_by: Option<String>,
    /// What it was asked for otherwise than the other answers of its conversation.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub once: Option<OneOffOptions>,
}

// ---- what happens beside turns ----

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AppEvent {
    ConversationChanged {
        conversation: ConversationSummary,
    },
    ConversationRemoved {
        id: String,
    },
    FolderChanged {
        folder: Folder,
    },
    FolderRemoved {
        id: String,
    },
    ModelChanged {
        model: ModelEntry,
    },
    ModelRemoved {
        id: String,
    },
    ModelImport {
        progress: ImportProgress,
    },
    SettingChanged {
        row: SettingRow,
    },
    PresetChanged {
        preset: Preset,
    },
    PresetRemoved {
        id: String,
    },
    /// New, further, or in another state.
    DownloadChanged {
        download: Download,
    },
    DownloadRemoved {
        id: String,
    },
    /// Calls of an answer have come further.
    ToolCalls {
        /// Null: a chat that is kept nowhere; its answers go by the names of their turns.
        conversation: Option<String>,
        message: String,
        calls: Vec<ToolCall>,
        /// Nothing more happens to them by itself.
        over: bool,
        /// The turn that answers what they brought.
        turn: Option<String>,
    },
    ToolServerChanged {
        server: ToolServerInfo,
    },
    ToolServerRemoved {
        id: String,
    },
    /// Something the user should know though nothing failed.
    Notice {
        error: ErrorInfo,
    },
}
