//! Messages about contexts: retention, the fate of their files, and cache hit figures.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{ChatOptions, LoadSpec, ModelRef, PromptMessage};
use crate::Error;

/// Retention of contexts after their turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextRetention {
    /// Folder for stored contexts. None: not stored.
    pub folder: Option<PathBuf>,
    /// Answers between stores; evicted contexts are always stored.
    pub every: u32,
    /// Bytes that idle contexts of a model may take in memory.
    pub memory_bytes: u64,
    /// Seconds without a turn after which a context leaves memory. None: only under memory
    /// pressure. Without a store it stays.
    #[serde(default)]
    pub idle_s: Option<u64>,
    /// Seconds of idleness after which a model leaves memory. None: it stays.
    #[serde(default)]
    pub unload_after_s: Option<u64>,
}

/// A conversation whose context is to be preloaded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PrefetchRequest {
    pub model: ModelRef,
    pub load: LoadSpec,
    pub conversation: String,
    pub messages: Vec<PromptMessage>,
    pub chat: ChatOptions,
    pub keeping: ContextRetention,
}

/// Changes to context files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Checkpoints {
    pub conversation: String,
    pub written: Vec<StoredFile>,
    /// Names of existing files that are still needed.
    pub read: Vec<String>,
    /// Names of invalid files that were removed.
    pub gone: Vec<String>,
    /// Why they were invalid, or why nothing could be written.
    pub error: Option<Error>,
}

/// A context file on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    pub key: String,
    pub path: PathBuf,
    pub bytes: u64,
    /// Tokens up to its end.
    pub position: u64,
}

/// Memory use of contexts, and cache hits since the worker started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KvStats {
    pub hits: Hits,
    pub models: Vec<ModelKv>,
}

/// Prompt tokens by origin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hits {
    pub turns: u64,
    pub prompt_tokens: u64,
    /// From the conversation's own context, in memory.
    pub memory_tokens: u64,
    /// From another context with the same beginning.
    pub shared_tokens: u64,
    /// From files.
    pub disk_tokens: u64,
}

impl Hits {
    /// The sum of both.
    pub fn with(self, other: Self) -> Self {
        Self {
            turns: self.turns + other.turns,
            prompt_tokens: self.prompt_tokens + other.prompt_tokens,
            memory_tokens: self.memory_tokens + other.memory_tokens,
            shared_tokens: self.shared_tokens + other.shared_tokens,
            disk_tokens: self.disk_tokens + other.disk_tokens,
        }
    }
}

/// The contexts of one loaded model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelKv {
    pub model: String,
    pub contexts: u32,
    pub bytes: u64,
    /// Pages of full-attention layers, of windows, of recurrent states, and aged pages.
    pub pools: [PoolKv; 4],
    /// Tokens of all contexts, shared ones counted for each.
    pub tokens: u64,
}

/// Pages of a model's KV pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolKv {
    pub places: u32,
    pub held: u32,
    /// Held by several contexts.
    pub shared: u32,
    /// Ever used, whether held or free now.
    pub touched: u32,
}
