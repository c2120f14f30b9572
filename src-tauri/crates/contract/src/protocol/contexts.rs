//! What is said of contexts: how they are kept, what became of their files, how often they were found.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{ChatOptions, LoadSpec, ModelRef, PromptMessage};
use crate::Error;

/// What becomes of contexts after their turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextRetention {
    /// Where they are stored. None: nowhere.
    pub folder: Option<PathBuf>,
    /// Answers from one store to the next; what leaves memory is stored in any case.
    pub every: u32,
    /// Bytes that the contexts of a model may take in memory while nobody uses them.
    pub memory_bytes: u64,
    /// After so many seconds without a turn a context leaves memory. None: when memory is needed. Where nothing is
    /// stored it stays.
    #[serde(default)]
    pub idle_s: Option<u64>,
    /// Seconds after which a model that nobody asks leaves memory. None: it stays.
    #[serde(default)]
    pub unload_after_s: Option<u64>,
}

/// A conversation as it was opened.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PrefetchRequest {
    pub model: ModelRef,
    pub load: LoadSpec,
    pub conversation: String,
    pub messages: Vec<PromptMessage>,
    pub chat: ChatOptions,
    pub keeping: ContextRetention,
}

/// What happened to files of contexts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Checkpoints {
    pub conversation: String,
    pub written: Vec<StoredFile>,
    /// Names of those that were there already, and are needed.
    pub read: Vec<String>,
    /// Names of those that were no good, and were removed.
    pub gone: Vec<String>,
    /// Why, or why nothing could be written.
    pub error: Option<Error>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    pub key: String,
    pub path: PathBuf,
    pub bytes: u64,
    /// Tokens up to its end.
    pub position: u64,
}

/// How contexts use memory, and how often they were found, since the worker began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KvStats {
    pub hits: Hits,
    pub models: Vec<ModelKv>,
}

/// Tokens of prompts by where they came from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hits {
    pub turns: u64,
    pub prompt_tokens: u64,
    /// From the conversation's own context, in memory.
    pub memory_tokens: u64,
    /// From another's that begins alike.
    pub shared_tokens: u64,
    /// From files.
    pub disk_tokens: u64,
}

impl Hits {
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
    /// Pages of layers that keep everything, of windows, recurrent states, and pages that have aged.
    pub pools: [PoolKv; 4],
    /// Tokens that all contexts hold, what they share counted for each.
    pub tokens: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolKv {
    pub places: u32,
    pub held: u32,
    /// By more than one.
    pub shared: u32,
    /// Ever used, held or free by now.
    pub touched: u32,
}
