//! The audit log: one line of JSON for every answer and every refused file, chained by hashes, so that a later change
//! shows.
//!
//! Guarantees that lines of several processes form one chain. Never contains what was said, unless the caller puts it
//! into the record. Somebody who may write the files can also make a new chain: note the last hash elsewhere.
#![forbid(unsafe_code)]

mod chain;
mod log;
mod record;
mod verify;

pub use log::AuditLog;
pub use record::{AuditEntry, AuditRecord, AuditTokens, Interface, RefusalRecord};
pub use verify::{BrokenLine, Verification, verify};
