//! Durable conversations: a tree of messages in SQLite, partial answers as they grow, the token log, settings and the
//! entries of the model library.
//!
//! Guarantees that acknowledged data is on disk, and never empties or overwrites a damaged or newer file. Knows nothing
//! of models, frontends or the types that cross an edge.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod api_objects;
mod archive;
mod attachments;
mod backup;
mod checkpoints;
mod compactions;
mod conversation;
mod db;
mod downloads;
mod endpoints;
mod error;
mod folders;
mod header;
pub mod images;
mod library;
mod notes;
mod owner;
mod passages;
mod presets;
mod projects;
mod read_only;
mod readable_copy;
mod recover;
mod repair;
mod schema;
mod search_form;
mod snippet;
mod step_limit;
pub mod table;
mod tools;
mod trash;
mod tree;
mod turns;
mod wal;

pub use archive::{ArchivedFiles, ConversationArchive, RestoreCounts};
pub use attachments::NewAttachments;
pub use backup::{BackupFile, BackupJob};
pub use conversation::{Branch, BranchMessage, Session};
pub use db::Notice;
pub use db::inspect::FILE_NAME;
pub use error::{Result, SessionError};
pub use folders::{MAX_FOLDER_LEVELS, RemovedFolder};
pub use passages::{PassageIndex, RankedPassage};
pub use projects::ProjectRow;
pub use table::api_object::ApiObjectRow;
pub use table::attachment::{AttachmentRow, MessageAttachments, PassageRow};
pub use table::checkpoint::{CheckpointRow, KvFile, KvTotals};
pub use table::chunk::AnswerChunk;
pub use table::compaction::CompactionRow;
pub use table::connection::ConnectionRow;
pub use table::conversation::{ConversationRow, TitledBy};
pub use table::download::{DownloadRow, DownloadStage, FileHashRow};
pub use table::endpoint::EndpointRow;
pub use table::folder::FolderRow;
pub use table::message::{MessageRow, MessageState};
pub use table::model::ModelRow;
pub use table::model_run::ModelRunRow;
pub use table::note::NoteRow;
pub use table::preset::PresetRow;
pub use table::project::ProjectFileRow;
pub use table::role::Role;
pub use table::search::SearchHit;
pub use table::token_log::TokenLog;
pub use table::tool_server::ToolServerRow;
pub use turns::{NewTurn, StartedTurn, TurnEnding};
