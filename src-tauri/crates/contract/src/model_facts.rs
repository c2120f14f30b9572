//! The properties of a model file: facts that are stored in the library and shown without opening
//! the file again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The properties of a model file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFacts {
    /// The name in the file's metadata, or its file name.
    pub name: String,
    /// Bytes of all weights.
    pub bytes: u64,
    /// As in `general.architecture`.
    pub architecture: String,
    /// Number of weights.
    pub parameters: u64,
    /// The dtype that most weights have.
    pub dtype: String,
    /// Positions the model was trained for.
    pub context_length: u32,
    /// Files that hold weights.
    pub files: u32,
    /// Bytes of those files.
    pub disk_bytes: u64,
    /// Of the contents.
    pub fingerprint: String,
    /// Figures for its memory use.
    pub sizes: ModelSizes,
    /// Capabilities of its chat template.
    pub skills: TemplateCapabilities,
    /// It has a vision tower, and takes images.
    #[serde(default)]
    pub images: bool,
    /// Larger images take more tokens, which a limit can keep down.
    #[serde(default)]
    pub image_detail: bool,
}

/// Sizes from which memory and speed are estimated; no weight is read for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelSizes {
    /// Bytes of all weights as stored.
    pub weights: u64,
    /// Bytes that one token reads, by format.
    pub read: BTreeMap<String, u64>,
    /// Bytes of the weights of each layer, in order. Empty: unknown.
    #[serde(default)]
    pub layer_weights: Vec<u64>,
    /// Bytes before the first layer: embedding tables.
    #[serde(default)]
    pub before_layers: u64,
    /// Bytes after the last layer: the output norm and matrix, counted here even if tied.
    #[serde(default)]
    pub behind_layers: u64,
    /// Layers that keep keys and values, equal ones grouped.
    pub layers: Vec<KvLayerGroup>,
    /// Floats of all recurrent states.
    pub state_floats: u64,
    /// Floats of one token that are live at once during computation.
    pub row_floats: u64,
    /// Heads of the widest attention.
    pub n_heads: usize,
    /// Length of one of those heads.
    pub head_dim: usize,
    /// Rows of one run.
    pub max_rows: usize,
    /// Tokens of the vocabulary.
    pub n_vocab: usize,
    /// Positions the model was trained for.
    pub context_length: usize,
    /// The model computes text embeddings.
    #[serde(default)]
    pub embeds: bool,
    /// Bytes of the vision tower's weights as stored.
    #[serde(default)]
    pub vision_weights: u64,
    /// Bytes of what the tower computes for the largest image.
    #[serde(default)]
    pub vision_activations: u64,
}

/// Layers that keep the same number of keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KvLayerGroup {
    /// Number of layers.
    pub n: usize,
    /// Key and value heads of each.
    pub n_kv_heads: usize,
    /// Length of one head.
    pub head_dim: usize,
    /// Positions of a sliding window. None: all.
    pub window: Option<usize>,
}

/// What a model's chat template supports besides plain answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateCapabilities {
    /// It renders tools.
    pub tools: bool,
    /// Whether the model reasons first, and what controls it.
    pub thinking: ThinkingSupport,
}

/// Whether a model reasons before it answers, and what controls it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ThinkingSupport {
    /// The template has no reasoning.
    #[default]
    Never,
    /// The template always writes reasoning.
    Always,
    /// `enable_thinking` switches it.
    Switched,
    /// `reasoning_effort` sets its level.
    Graded,
}
