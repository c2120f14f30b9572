//! Stored contexts: named ones, and totals of all.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Stores a conversation's context under a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct CheckpointArgs {
    pub conversation: String,
    pub name: String,
}

/// Lists named contexts, of one conversation or all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct CheckpointsArgs {
    /// None: of all conversations.
    #[serde(default)]
    pub conversation: Option<String>,
}

/// A named checkpoint of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct CheckpointInfo {
    pub id: String,
    pub name: String,
    pub conversation: String,
    /// Its last message.
    pub message: String,
    #[ts(type = "number")]
    pub created_ms: i64,
    /// Size of the stored context; 0: none is stored, and it has to be recomputed.
    #[ts(type = "number")]
    pub bytes: u64,
}

/// Memory and disk use of contexts, and cache hits since the worker started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct KvInfo {
    #[ts(type = "number")]
    pub turns: u64,
    #[ts(type = "number")]
    pub prompt_tokens: u64,
    /// Share of prompt tokens that were reused.
    pub hit_rate: f64,
    pub memory: KvTier,
    /// Memory hits in another conversation's context.
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
    /// Pages requantised to fewer bits.
    pub aged_pages: KvPool,
}

/// Size, budget and hits of a tier of the KV cache.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
pub struct KvTier {
    #[ts(type = "number")]
    pub bytes: u64,
    #[ts(type = "number")]
    pub budget_bytes: u64,
    #[ts(type = "number")]
    pub hit_tokens: u64,
}

/// Pages of one allocator.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
pub struct KvPool {
    pub places: u32,
    pub held: u32,
    /// Held by more than one context.
    pub shared: u32,
    /// Free share of the pages ever used.
    pub fragmentation: f64,
}

/// Main memory as the system reports it. Absent: unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct MemoryInfo {
    /// This program and its workers, including mapped model pages, which the system can reclaim.
    #[ts(type = "number | null")]
    pub ours_bytes: Option<u64>,
    /// Still available to other programs.
    #[ts(type = "number | null")]
    pub free_bytes: Option<u64>,
    #[ts(type = "number | null")]
    pub total_bytes: Option<u64>,
}
