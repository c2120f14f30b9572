//! Conversations that survive: a tree of messages in SQLite, partial answers as they grow, the token
//! log, settings and the model library's entries.
//!
//! Guarantees that what was acknowledged is on disk, and that a damaged or newer file is never
//! emptied or overwritten. Knows nothing of models, doors or the types that cross an edge.
#![forbid(unsafe_code)]

pub mod compress;
mod conversation;
mod db;
mod error;
mod folds;
mod owner;
mod salvage;
pub mod table;

pub use conversation::{Branch, BranchMessage, Ending, NewTurn, Session, Started};
pub use db::Notice;
pub use error::{Result, SessionError};
pub use table::conversation::ConversationRow;
pub use table::fold::FoldRow;
pub use table::message::{MessageRow, MessageState, Role};
pub use table::model::ModelRow;
pub use table::token_log::TokenLog;
