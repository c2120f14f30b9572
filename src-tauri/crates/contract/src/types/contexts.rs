//! Stored contexts: named ones, and figures of all.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct CheckpointArgs {
    pub conversation: String,
    pub name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct CheckpointsArgs {
    /// None: of all conversations.
    #[serde(default)]
    pub conversation: Option<String>,
}

/// A named place in a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct CheckpointInfo {
    pub id: String,
    pub name: String,
    pub conversation: String,
    /// The last message that belongs to it.
    pub message: String,
    #[ts(type = "number")]
    pub created_ms: i64,
    /// Of the stored context; 0: there is none (any more), and it is read anew.
    #[ts(type = "number")]
    pub bytes: u64,
}

/// How contexts use memory and disk, and how often they were found, since the worker began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct KvInfo {
    #[ts(type = "number")]
    pub turns: u64,
    #[ts(type = "number")]
    pub prompt_tokens: u64,
    /// Share of prompt tokens that were not computed again.
    pub hit_rate: f64,
    pub memory: KvTier,
    /// Of the memory's hits, those in another conversation's context.
    #[ts(type = "number")]
    pub shared_tokens: u64,
    pub disk: KvTier,
    #[ts(type = "number")]
    pub files: u64,
    /// Bytes that named checkpoints keep from eviction.
    #[ts(type = "number")]
    pub pinned_bytes: u64,
    /// Contexts in memory.
    pub contexts: u32,
    pub pages: KvPool,
    pub window_pages: KvPool,
    pub states: KvPool,
    /// Of those that keep everything, in fewer bits.
    pub aged_pages: KvPool,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
pub struct KvTier {
    #[ts(type = "number")]
    pub bytes: u64,
    #[ts(type = "number")]
    pub budget_bytes: u64,
    #[ts(type = "number")]
    pub hit_tokens: u64,
}

/// Places of one allocator.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
pub struct KvPool {
    pub places: u32,
    pub held: u32,
    /// Held by more than one context.
    pub shared: u32,
    /// Share of the places ever used that is free now.
    pub fragmentation: f64,
}

/// Main memory, as the system counts it. Absent: it doesn't say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct MemoryInfo {
    /// Of this program and its workers; pages of models that are mapped count, though they can be let go.
    #[ts(type = "number | null")]
    pub ours_bytes: Option<u64>,
    /// What other programs could still have.
    #[ts(type = "number | null")]
    pub free_bytes: Option<u64>,
    #[ts(type = "number | null")]
    pub total_bytes: Option<u64>,
}
