//! The only types that cross an edge: window, HTTP, terminal. TypeScript is generated from them
//! (`bindings.rs`): a change here changes `ui/src/backend/bindings.ts`.
//!
//! Ids are UUIDv7 strings; times are milliseconds since the Unix epoch, UTC.

mod attachments;
mod connections;
mod contexts;
mod downloads;
mod draft;
mod help;
mod library;
mod logprobs;
mod notes;
mod plugins;
mod presets;
mod profile;
mod projects;
mod remote;
mod sending;
mod serving;
mod settings;
mod temporary;
mod tool_forms;
mod tools;
mod tree;
mod tunes;
mod turns;
mod updates;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::CompactionMethod;

pub use attachments::*;
pub use connections::{ConnectionInfo, ConnectionPurpose, ConnectionsArgs};
pub use contexts::{CheckpointArgs, CheckpointInfo, CheckpointsArgs, KvInfo, KvPool, KvTier, MemoryInfo};
pub use downloads::*;
pub use draft::{ContextParts, DraftArgs, DraftCount, HiddenPages, HiddenPagesReason};
pub use help::{GuideReply, HelpArgs, HelpArticle, HelpSearchArgs, HelpTarget, HelpTopic};
pub use library::*;
pub use logprobs::{PickArgs, TokenAlternatives, TokenShare};
pub use notes::{MemoryShare, Note, NoteArgs};
pub use plugins::*;
pub use presets::*;
pub use profile::*;
pub use projects::{Project, ProjectArgs, ProjectFileArgs, ProjectPathArgs, ProjectShare};
pub use remote::*;
pub use sending::SendArgs;
pub use serving::{ListeningServer, LocalServer, ServedRequest, ServerState};
pub use settings::*;
pub use temporary::{TemporaryArgs, TemporaryMessage};
pub use tool_forms::*;
pub use tools::*;
pub use tree::*;
pub use tunes::*;
pub use turns::{Finish, TurnEvent, TurnEventKind, TurnStarted, TurnStats};
pub use updates::{PackageKind, UpdateInfo, UpdateMethod, UpdateOffer, UpdatePhase};

/// The program's version, folders and processor.
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
    /// An action that the user can choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub action: Option<ErrorAction>,
}

/// A conversation as lists show it.
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
    /// The turn in progress.
    pub active_turn: Option<String>,
    /// Its folder.
    pub folder: Option<String>,
    pub pinned: bool,
    /// When it was moved to the trash.
    #[ts(type = "number | null")]
    pub deleted_ms: Option<i64>,
    /// The most recently used one has the greatest value, whatever the clock says.
    #[ts(type = "number")]
    pub activity: i64,
    /// Grows with every change in it.
    #[ts(type = "number")]
    pub revision: i64,
}

/// A conversation with the messages of its active branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Conversation {
    pub summary: ConversationSummary,
    /// The active branch, root first.
    pub messages: Vec<Message>,
    pub options: ConversationOptions,
    /// The latest compaction: earlier messages are left out or summarised.
    pub compaction: Option<CompactionInfo>,
    /// Strategy when it is longer than the context. Absent: as the setting says.
    pub compression: Option<CompactionStrategy>,
}

/// Strategy for conversations longer than the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum CompactionStrategy {
    /// No compaction: a conversation that is too long is an error.
    Off,
    /// The oldest messages are left out.
    Window,
    /// The oldest messages are summarised by the model.
    Summary,
    /// The model forgets what it attends to least.
    Attention,
}

impl CompactionStrategy {
    /// The compaction method. None: off.
    pub fn strategy(self) -> Option<CompactionMethod> {
        match self {
            Self::Off => None,
            Self::Window => Some(CompactionMethod::Window),
            Self::Summary => Some(CompactionMethod::Summary),
            Self::Attention => Some(CompactionMethod::Attention),
        }
    }

    /// The strategy that uses this method.
    pub fn of(strategy: CompactionMethod) -> Self {
        match strategy {
            CompactionMethod::Window => Self::Window,
            CompactionMethod::Summary => Self::Summary,
            CompactionMethod::Attention => Self::Attention,
        }
    }

    /// The name stored in the database and in settings.
    pub fn name(self) -> &'static str {
        self.strategy().map_or("off", CompactionMethod::name)
    }

    /// Parses the stored name.
    pub fn of_name(name: &str) -> Option<Self> {
        if name == "off" { Some(Self::Off) } else { CompactionMethod::of_name(name).map(Self::of) }
    }
}

/// The extent of a compaction: messages up to `until` stay, but the model doesn't see them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct CompactionInfo {
    /// The last message hidden from the model.
    pub until: String,
    pub strategy: CompactionStrategy,
    /// The summary that replaces them for the model.
    pub summary: Option<String>,
    /// Of the prompt.
    pub tokens_before: u32,
    pub tokens_after: u32,
    #[ts(type = "number")]
    pub created_ms: i64,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    System,
    User,
    Assistant,
}

/// How far a message has come.
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

/// A message of a conversation's tree.
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
    /// Files and passages that the model got with the question.
    #[serde(default)]
    pub sources: Vec<Citation>,
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
    /// A JSON object; the beginning of one where the answer was cut.
    pub arguments: String,
    /// Absent: the call is not ours to run, or not yet processed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub run: Option<ToolRun>,
}

/// Arguments of calls that take none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct NoArgs {}

/// Names an object by its id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct IdArgs {
    pub id: String,
}

/// Renames a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct RenameArgs {
    pub id: String,
    pub title: String,
}

/// Sets the model of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct SetModelArgs {
    pub id: String,
    /// Library id.
    pub model: String,
}

/// Sets the compaction strategy of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct SetCompressionArgs {
    pub id: String,
    /// Absent: as the setting says.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub strategy: Option<CompactionStrategy>,
}

/// Repeats the last turn of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct RetryArgs {
    pub conversation: String,
}

/// Names a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct TurnArgs {
    pub turn: String,
}

/// Carries a text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct TextArgs {
    pub text: String,
}

/// Names a file or folder on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct PathArgs {
    /// A GGUF file, or a folder with safetensors, config.json and tokenizer.json.
    pub path: String,
}

/// Sets a setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct SettingArgs {
    pub key: String,
    /// `null` if the setting may be absent.
    #[ts(type = "unknown")]
    pub value: serde_json::Value,
}

/// Names a setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct KeyArgs {
    pub key: String,
}

/// An application event, apart from those of turns.
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
    /// All notes, oldest first.
    NotesChanged {
        notes: Vec<Note>,
    },
    /// A fine-tuning run was started, did a step, or is in another state.
    TuneChanged {
        tune: TuneInfo,
    },
    TuneRemoved {
        id: String,
    },
    /// Added, progressed, or in another state.
    DownloadChanged {
        download: Download,
    },
    DownloadRemoved {
        id: String,
    },
    /// Progress of an answer's tool calls.
    ToolCalls {
        /// Null: a temporary chat, whose answers are named by their turns.
        conversation: Option<String>,
        message: String,
        calls: Vec<ToolCall>,
        /// They change no further without the user.
        over: bool,
        /// The turn that answers their results.
        turn: Option<String>,
    },
    ToolServerChanged {
        server: ToolServerInfo,
    },
    ToolServerRemoved {
        id: String,
    },
    /// A tool server asks the user something.
    ToolFormOpened {
        form: ToolForm,
    },
    /// Answered, or no longer waiting.
    ToolFormClosed {
        id: String,
    },
    /// What is known of newer versions of the program has changed.
    UpdateChanged {
        update: UpdateInfo,
    },
    /// Something the user should know though nothing failed.
    Notice {
        error: ErrorInfo,
    },
}
