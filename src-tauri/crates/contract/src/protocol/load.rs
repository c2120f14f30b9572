//! How a model is to be loaded.

use serde::{Deserialize, Serialize};

use super::{Backend, Kv, ModelRef};
use crate::{CpuRequest, GpuRequest, KvAging, RopeScaling};

/// Weights in another format than their file's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantize {
    /// `q4_k_m`, `auto` …
    pub dtype: String,
    /// Where what was made is kept.
    pub folder: String,
}

/// How a model is loaded; another value means loading it again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadSpec {
    pub backend: Backend,
    /// What is asked of graphics cards, where they compute.
    #[serde(default)]
    pub cards: GpuRequest,
    /// Threads, and where they run.
    #[serde(default)]
    pub machine: CpuRequest,
    pub kv: Kv,
    /// When old parts of a context go to fewer bits.
    #[serde(default)]
    pub kv_aging: KvAging,
    /// Tokens that layers with rotated positions see. None: as the model has it.
    pub kv_window: Option<usize>,
    /// None: as the model has it.
    pub rope_scaling: Option<RopeScaling>,
    /// Tokens. None: the model's own, at most `settings::DEFAULT_CONTEXT`.
    pub context: Option<usize>,
    /// Bytes of weights that may be in memory at once. None: as many as the machine has room for.
    #[serde(default)]
    pub resident: Option<u64>,
    /// Bytes that the contexts of all sequences may take. None: a part of what is free.
    #[serde(default)]
    pub context_bytes: Option<u64>,
    /// Bytes that weights, contexts, activations and vocabulary may take. None: what is free.
    #[serde(default)]
    pub memory: Option<u64>,
    /// Large pages are not asked for.
    #[serde(default)]
    pub small_pages: bool,
    /// None: weights as they are stored.
    #[serde(default)]
    pub quantize: Option<Quantize>,
    /// Adapters, each as `F[:SCALE]`.
    #[serde(default)]
    pub lora: Vec<String>,
    /// A smaller model that guesses ahead.
    #[serde(default)]
    pub draft: Option<ModelRef>,
}
