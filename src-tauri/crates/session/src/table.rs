//! The tables: SQL, row and queries, one file each. Each creates itself by a line in `MIGRATIONS` (db.rs).

pub mod attachment;
pub mod checkpoint;
pub mod chunk;
pub mod compaction;
pub mod compaction_strategy;
pub mod connection;
pub mod conversation;
pub mod document;
pub mod download;
pub mod endpoint;
pub mod folder;
pub mod message;
pub mod model;
pub mod model_folder;
pub mod model_run;
pub mod preset;
pub mod search;
pub mod setting;
mod text_enum;
pub mod token_log;
pub mod tool_server;
pub mod turn;
