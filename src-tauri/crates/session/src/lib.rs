//! Conversations that survive: a tree of messages in SQLite, partial answers as they grow, the token
//! log, settings and the model library's entries.
//!
//! Guarantees that what was acknowledged is on disk, and that a damaged or newer file is never
//! emptied or overwritten. Knows nothing of models, doors or the types that cross an edge.
#![forbid(unsafe_code)]

mod attached;
mod backup;
mod checkpoints;
mod conversation;
mod db;
mod downloads;
mod elsewhere;
mod error;
mod folders;
mod folds;
mod library;
mod owner;
mod passages;
mod presets;
mod salvage;
pub mod table;
mod tools;
mod trash;
mod tree;
mod turns;
mod whole;

pub use attached::Given;
pub use backup::{BackUp, Backup};
pub use conversation::{Branch, BranchMessage, Session};
pub use db::Notice;
pub use error::{Result, SessionError};
pub use folders::{Emptied, MOST_FOLDER_LEVELS};
pub use passages::{PassageIndex, Ranked};
pub use table::attachment::{Attached, AttachmentRow, PassageRow};
pub use table::checkpoint::{CheckpointRow, KvFile, KvTotals};
pub use table::connection::ConnectionRow;
pub use table::conversation::{ConversationRow, TitledBy};
pub use table::download::{DownloadRow, DownloadStage, FileHashRow};
pub use table::endpoint::EndpointRow;
pub use table::fold::FoldRow;
pub use table::folder::FolderRow;
pub use table::message::{MessageRow, MessageState, Role};
pub use table::model::ModelRow;
pub use table::model_run::ModelRunRow;
pub use table::preset::PresetRow;
pub use table::search::Hit;
pub use table::token_log::TokenLog;
pub use table::tool_server::ToolServerRow;
pub use turns::{Ending, NewTurn, Piece, Started};
pub use whole::{Files, Restored, Whole};
