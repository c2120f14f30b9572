//! Conversations that survive: a tree of messages in SQLite, partial answers as they grow, the token
//! log, settings and the model library's entries.
//!
//! Guarantees that what was acknowledged is on disk, and that a damaged or newer file is never
//! emptied or overwritten. Knows nothing of models, doors or the types that cross an edge.
#![forbid(unsafe_code)]

mod backup;
mod checkpoints;
pub mod compress;
mod conversation;
mod db;
mod error;
mod folds;
mod owner;
mod salvage;
pub mod table;
mod trash;
mod tree;
mod turns;
mod whole;

pub use backup::{BackUp, Backup};
pub use checkpoints::CheckpointFolder;
pub use conversation::{Branch, BranchMessage, Session};
pub use db::Notice;
pub use error::{Result, SessionError};
pub use table::checkpoint::{CheckpointRow, KvFile, KvTotals};
pub use table::conversation::{ConversationRow, TitledBy};
pub use table::fold::FoldRow;
pub use table::folder::FolderRow;
pub use table::message::{MessageRow, MessageState, Role};
pub use table::model::ModelRow;
pub use table::search::Hit;
pub use table::token_log::TokenLog;
pub use turns::{Ending, NewTurn, Piece, Started};
pub use whole::{Restored, Whole};
