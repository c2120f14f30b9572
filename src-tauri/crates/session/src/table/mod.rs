//! The tables: SQL, row and queries, one file each. Each creates itself by a line in `MIGRATIONS` (db.rs).

pub mod checkpoint;
pub mod chunk;
pub mod compression;
pub mod conversation;
pub mod fold;
pub mod folder;
pub mod message;
pub mod model;
pub mod search;
pub mod setting;
pub mod token_log;
pub mod turn;
mod words;
