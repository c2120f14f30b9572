//! The library's types: where models lie, whether they run here, their size, imports and removals.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{ErrorInfo, RemoteInfo};

/// What an interface offers besides an error's remedy. Never done without the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ErrorAction {
    /// Answer with this library model instead.
    UseModel { model: String },
}

/// The location of a model's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ModelSource {
    /// Ships inside the application.
    BuiltIn,
    /// A file that stays where the user has it.
    File,
    /// In the application's own folder, or put into the hub's cache by it: deleting it removes the file.
    Owned,
    /// In the shared Hugging Face cache, read in place.
    HubCache,
    /// In LM Studio's folder, read in place.
    LmStudio,
    /// In a folder that the user added, read in place.
    Folder,
    /// On a remote server.
    Remote,
}

/// Whether a model is loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ModelState {
    Unloaded,
    Loading {
        fraction: f32,
    },
    Ready,
    /// The file is missing or unusable; the entry stays so that nothing vanishes silently.
    Unusable {
        error: ErrorInfo,
    },
}

/// A model of the library.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ModelEntry {
    pub id: String,
    pub name: String,
    pub source: ModelSource,
    pub path: Option<String>,
    #[ts(type = "number")]
    pub bytes: u64,
    pub architecture: String,
    #[ts(type = "number")]
    pub parameters: u64,
    /// The dtype most weights have, such as `Q4_K`.
    pub dtype: String,
    /// Tokens; 0: unknown.
    pub context_length: u32,
    pub state: ModelState,
    /// Of another server's model.
    #[ts(optional = nullable)]
    pub remote: Option<RemoteInfo>,
    /// Number of its files.
    pub files: u32,
    /// Bytes of all of them.
    #[ts(type = "number")]
    pub disk_bytes: u64,
    /// Absent: the file can't be read, or the model only drafts.
    pub fit: Option<Box<ModelFit>>,
    /// An embedding model, which gives no answers.
    pub embeds: bool,
    /// An assistant, which drafts for another model and gives no answers.
    pub only_drafts: bool,
    /// Absent: unknown, because another server has it or its file was not inspected for it.
    #[ts(optional = nullable)]
    pub skills: Option<ModelSkills>,
}

/// What a model supports besides plain answers, according to its files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ModelSkills {
    /// It accepts tools.
    pub tools: bool,
    pub thinking: Thinking,
    /// It sees images.
    pub images: bool,
    /// The detail of images can be chosen: larger ones take more tokens.
    pub image_detail: bool,
}

/// Whether a model reasons before it answers, and how that can be controlled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// No reasoning, as far as known.
    #[default]
    Never,
    /// It does or may; it can't be switched.
    Always,
    /// It can be switched on and off.
    Switched,
    /// Its effort can be chosen.
    Graded,
}

/// Whether a model runs on this computer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum FitVerdict {
    RunsWell,
    /// It fits, but answers are slower than reading speed.
    Slow,
    WontFit,
}

/// What a model takes in memory, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct FitNeeds {
    #[ts(type = "number")]
    pub weights: u64,
    /// One conversation that fills the context.
    #[ts(type = "number")]
    pub context: u64,
    #[ts(type = "number")]
    pub activations: u64,
    #[ts(type = "number")]
    pub vocabulary: u64,
    #[ts(type = "number")]
    pub total: u64,
}

/// The share of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct FitGpu {
    pub name: String,
    /// Memory that a model may take; the share held by other programs is unknown. Absent: the
    /// driver doesn't report it.
    #[ts(type = "number | null")]
    pub memory_bytes: Option<u64>,
    /// Layers of the model; absent: unknown.
    pub layers: Option<u32>,
    /// Layers that would be on the GPU.
    pub layers_asked: Option<u32>,
    /// Layers that fit its memory; absent: its memory or the layers' sizes are unknown.
    pub layers_fit: Option<u32>,
    /// Bytes that the GPU would hold, and bytes that stay in system memory.
    #[ts(type = "number | null")]
    pub on_card_bytes: Option<u64>,
    #[ts(type = "number | null")]
    pub stays_bytes: Option<u64>,
}

/// Whether a model runs here, with the numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ModelFit {
    pub verdict: FitVerdict,
    /// Computed from the file itself; else from published figures.
    pub exact: bool,
    /// Tokens of the assumed context.
    pub context: u32,
    /// Precision of the context: `f16` …
    pub kv: String,
    pub needs: FitNeeds,
    /// Memory available to a model now, and the total.
    #[ts(type = "number | null")]
    pub free_bytes: Option<u64>,
    #[ts(type = "number | null")]
    pub total_bytes: Option<u64>,
    /// The GPU's share; absent: no GPU is requested.
    pub card: Option<FitGpu>,
    /// The longest context that fits; absent: not even a short one.
    pub longest_context: Option<u32>,
    /// Tokens per second at the start of a conversation; absent: this computer's speed is unmeasured.
    pub tok_s: Option<f64>,
    /// The same with a full context.
    pub tok_s_full: Option<f64>,
    /// A sentence with the decisive numbers.
    pub reason: String,
    /// Its best run here.
    pub measured: Option<FitMeasured>,
}

/// Measured figures of a run, and the estimate for that very run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
pub struct FitMeasured {
    pub tok_s: f64,
    pub estimated_tok_s: Option<f64>,
    /// Memory of the model at the end of that run; absent: other models were loaded.
    #[ts(type = "number | null")]
    pub memory_bytes: Option<u64>,
    #[ts(type = "number")]
    pub estimated_memory_bytes: u64,
    /// Tokens of the conversation then.
    pub tokens: u32,
    #[ts(type = "number")]
    pub at_ms: i64,
}

/// Published figures of a model that is not here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct FitFacts {
    /// Of all its weight files.
    #[ts(type = "number")]
    pub bytes: u64,
    /// Absent: derived from the size.
    #[serde(default)]
    #[ts(optional = nullable, type = "number | null")]
    pub parameters: Option<u64>,
    /// Active parameters per token of a mixture of experts; absent: all.
    #[serde(default)]
    #[ts(optional = nullable, type = "number | null")]
    pub active_parameters: Option<u64>,
    #[serde(default)]
    #[ts(optional = nullable)]
    pub context_length: Option<u32>,
    /// The format of most weights, such as `q4_k_m`; absent: derived from bytes and parameters.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub dtype: Option<String>,
}

/// A model, given in one of three ways, and its load options.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct FitArgs {
    /// Library id.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub id: Option<String>,
    /// A file or folder on this computer.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub path: Option<String>,
    #[serde(default)]
    #[ts(optional = nullable)]
    pub facts: Option<FitFacts>,
    /// Tokens; absent: as the settings say.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub context: Option<u32>,
    /// Precision of the context (`f32`, `f16`, `q8_0`, `q4_0`, or `q8_0/q4_0` for keys and values); absent: as the settings say.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub kv: Option<String>,
}

/// This computer's speed for weights of one format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct SpeedInfo {
    pub format: String,
    /// Gigabytes of weights processed per second.
    pub gb_s: f64,
}

/// A model of the catalogue, and whether it runs here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct OfferFit {
    /// Of the catalogue.
    pub id: String,
    pub facts: FitFacts,
    pub fit: ModelFit,
}

/// The catalogue's best model for this computer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Recommendation {
    /// Of the catalogue.
    pub id: String,
    pub reason: String,
    pub fit: ModelFit,
    /// At most one of each kind, from fast to best. The balanced one is the recommendation itself.
    pub choices: Vec<ModelChoice>,
}

/// A model that is offered as a first one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ModelChoice {
    pub kind: ChoiceKind,
    /// Of the catalogue.
    pub id: String,
    /// As the catalogue calls it.
    pub name: String,
    /// Of the download.
    pub bytes: u64,
    pub fit: ModelFit,
}

/// What speaks for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceKind {
    /// Answers at once, knows little.
    Fast,
    /// The recommendation.
    Balanced,
    /// Knows most, and still writes as fast as people read.
    Best,
}

/// How a model enters the library.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ImportHow {
    /// It stays where it is.
    #[default]
    Link,
    /// A copy in the application's folder.
    Copy,
    /// Moved into the application's folder.
    Move,
}

/// Imports a model into the library.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ImportArgs {
    /// A GGUF file, the first of a split one, or a folder with safetensors, config.json and tokenizer.json.
    pub path: String,
    #[serde(default)]
    pub how: ImportHow,
}

/// Progress of an import. The last one has `done` equal to `total`, or an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ImportProgress {
    pub path: String,
    #[ts(type = "number")]
    pub done_bytes: u64,
    #[ts(type = "number")]
    pub total_bytes: u64,
    pub error: Option<ErrorInfo>,
}

/// A removed model that can still be restored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct RemovedModel {
    pub id: String,
    pub name: String,
    #[ts(type = "number")]
    pub removed_ms: i64,
    /// Bytes freed by deleting it for good; 0: its files are not ours and stay.
    #[ts(type = "number")]
    pub disk_bytes: u64,
}

/// A folder that is scanned for models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ModelFolder {
    pub path: String,
    pub source: ModelSource,
    /// Models found in it.
    pub models: u32,
    /// Why it can't be read; it stays in the list.
    pub error: Option<ErrorInfo>,
}

/// The library's disk use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct LibraryUse {
    /// Largest first.
    pub models: Vec<ModelUse>,
    /// Of the application's own files, including removed ones.
    #[ts(type = "number")]
    pub owned_bytes: u64,
    /// Of removed models that can still be restored.
    #[ts(type = "number")]
    pub removed_bytes: u64,
    /// Of the disk that holds the application's folder.
    #[ts(type = "number | null")]
    pub free_bytes: Option<u64>,
}

/// The disk space that a model takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ModelUse {
    pub id: String,
    pub source: ModelSource,
    /// Of all its files.
    #[ts(type = "number")]
    pub disk_bytes: u64,
    /// Of files derived for faster loading.
    #[ts(type = "number")]
    pub made_bytes: u64,
}

/// The result of scanning all folders.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Scan {
    pub folders: Vec<ModelFolder>,
    pub models: Vec<ModelEntry>,
}
