//! State of sequences between forward passes: the pages and slots that hold it, the tokens it came from, and the
//! positions it can return to.

pub mod cache;
pub mod checksum;
pub(crate) mod evicted;
pub mod pool;
pub mod requantize;
pub mod rewind_point;
pub mod sequence_id;
pub mod size;
pub mod snapshot;

/// Tokens of one checkpoint chunk and of one requantization step: whole pages, some megabytes of keys and values.
pub const CHECKPOINT_CHUNK_TOKENS: usize = 256;
