//! Options for loading a model.

use serde::{Deserialize, Serialize};

use super::{Backend, Kv, ModelRef};
use crate::{CpuRequest, GpuRequest, KvAging, RopeScaling};

/// Weights in another format than their file's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantize {
    /// `q4_k_m`, `auto` …
    pub dtype: String,
    /// Folder for the converted file.
    pub folder: String,
}

/// Load options of a model; a change reloads it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadSpec {
    pub backend: Backend,
    /// The GPU request, for GPU backends.
    #[serde(default)]
    pub gpus: GpuRequest,
    /// Threads and their placement.
    #[serde(default)]
    pub machine: CpuRequest,
    pub kv: Kv,
    /// When old parts of a context are requantised.
    #[serde(default)]
    pub kv_aging: KvAging,
    /// Attention window of layers with rotary positions, in tokens. None: as in the model.
    pub kv_window: Option<usize>,
    /// None: as in the model.
    pub rope_scaling: Option<RopeScaling>,
    /// Tokens. None: the model's own, at most `settings::DEFAULT_CONTEXT`.
    pub context: Option<usize>,
    /// Bytes of weights that may be resident at once. None: as many as the machine has memory for.
    #[serde(default)]
    pub resident: Option<u64>,
    /// Bytes that the contexts of all sequences may take. None: a part of what is free.
    #[serde(default)]
    pub context_bytes: Option<u64>,
    /// Bytes that weights, contexts, activations and vocabulary may take. None: what is free.
    #[serde(default)]
    pub memory: Option<u64>,
    /// Disables large pages.
    #[serde(default)]
    pub small_pages: bool,
    /// None: weights as stored.
    #[serde(default)]
    pub quantize: Option<Quantize>,
    /// Adapters, each as `F[:SCALE]`.
    #[serde(default)]
    pub lora: Vec<String>,
    /// The draft model for speculative decoding.
    #[serde(default)]
    pub draft: Option<ModelRef>,
    /// Fails where the draft model cannot draft for this model. Otherwise the model is loaded without it, with a notice.
    #[serde(default)]
    pub draft_required: bool,
    /// Loads the model's own draft block, if it has one.
    #[serde(default)]
    pub draft_block: bool,
    /// File of the vision tower. None: the one in or beside the model, if there is one.
    #[serde(default)]
    pub mmproj: Option<String>,
}
