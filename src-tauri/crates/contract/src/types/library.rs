//! The library's types: where models lie, whether they run here, what they take, how they come and go.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{ErrorInfo, RemoteInfo};

/// What a door offers beside an error's remedy. Never done unasked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ErrorAction {
    /// Answer with this model of the library instead.
    UseModel { model: String },
}

/// Where a model's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ModelSource {
    /// Ships inside the application.
    BuiltIn,
    /// A file that stays where the user has it.
    File,
    /// In the application's own folder, or put into the hub's cache by it: deleting it removes the file.
    Owned,
    /// In the cache that programs of Hugging Face share, read in place.
    HubCache,
    /// In LM Studio's folder, read in place.
    LmStudio,
    /// In a folder that the user added, read in place.
    Folder,
    /// Another server has it, and answers.
    Remote,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ModelState {
    Unloaded,
    Loading {
        fraction: f32,
    },
    Ready,
    /// The file is gone or can't be used; the entry stays so that nothing vanishes silently.
    Unusable {
        error: ErrorInfo,
    },
}

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
    /// Tokens; 0: nobody says.
    pub context_length: u32,
    pub state: ModelState,
    /// Of another server's model.
    #[ts(optional = nullable)]
    pub remote: Option<RemoteInfo>,
    /// Files that it consists of.
    pub files: u32,
    /// Bytes of all of them.
    #[ts(type = "number")]
    pub disk_bytes: u64,
    /// Absent: the file can't be read.
    pub fit: Option<Box<ModelFit>>,
    /// It makes vectors of texts and does not answer.
    pub embeds: bool,
    /// Absent: nobody says; another server has it, or its file was not looked at for it yet.
    #[ts(optional = nullable)]
    pub skills: Option<ModelSkills>,
}

/// What a model can do beside answering, as its chat template tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ModelSkills {
    /// It can be told of tools.
    pub tools: bool,
    pub thinking: Thinking,
}

/// Whether a model thinks before it answers, and what it can be told of that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// As far as anybody knows.
    #[default]
    Never,
    /// It does, or may; it can't be told whether.
    Always,
    /// It can be told to, and not to.
    Switched,
    /// It can be told how long.
    Graded,
}

/// Whether a model runs on this computer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum FitVerdict {
    RunsWell,
    /// It fits, but answers come slower than people read.
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

/// The share of a graphics card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct FitCard {
    pub name: String,
    /// What a model may take of its memory; how much other programs hold of it nobody says. Absent: its driver doesn't say.
    #[ts(type = "number | null")]
    pub memory_bytes: Option<u64>,
    /// Layers of the model; absent: not known.
    pub layers: Option<u32>,
    /// Those that would be on the card.
    pub layers_asked: Option<u32>,
    /// Those that fit into its memory; absent: that or the layers' sizes are not known.
    pub layers_fit: Option<u32>,
    /// What the card would hold, and what stays in the computer's memory.
    #[ts(type = "number | null")]
    pub on_card_bytes: Option<u64>,
    #[ts(type = "number | null")]
    pub stays_bytes: Option<u64>,
}

/// Whether a model runs here, with the numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ModelFit {
    pub verdict: FitVerdict,
    /// Worked out from the file itself; else from what is published about it.
    pub exact: bool,
    /// Tokens of context that this is about.
    pub context: u32,
    /// Precision of the context: `f16` …
    pub kv: String,
    pub needs: FitNeeds,
    /// Memory that a model can have now, and all there is.
    #[ts(type = "number | null")]
    pub free_bytes: Option<u64>,
    #[ts(type = "number | null")]
    pub total_bytes: Option<u64>,
    /// What of it a graphics card would hold; absent: none is asked to.
    pub card: Option<FitCard>,
    /// The longest context that fits; absent: not even a short one.
    pub longest_context: Option<u32>,
    /// Tokens per second at the beginning of a conversation; absent: this computer's speed is not measured yet.
    pub tok_s: Option<f64>,
    /// The same when the context is full.
    pub tok_s_full: Option<f64>,
    /// A sentence with the numbers that decided.
    pub reason: String,
    /// What its best run here took.
    pub measured: Option<FitMeasured>,
}

/// What a run took, beside what was foretold for that very run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
pub struct FitMeasured {
    pub tok_s: f64,
    pub estimated_tok_s: Option<f64>,
    /// What the model took in memory at the end of that run; absent: other models were there.
    #[ts(type = "number | null")]
    pub memory_bytes: Option<u64>,
    #[ts(type = "number")]
    pub estimated_memory_bytes: u64,
    /// Tokens that the conversation held then.
    pub tokens: u32,
    #[ts(type = "number")]
    pub at_ms: i64,
}

/// What is published of a model that is not here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct FitFacts {
    /// Of all its files of weights.
    #[ts(type = "number")]
    pub bytes: u64,
    /// Absent: worked out from the size.
    #[serde(default)]
    #[ts(optional = nullable, type = "number | null")]
    pub parameters: Option<u64>,
    /// Parameters that a token passes through, where experts are chosen; absent: all.
    #[serde(default)]
    #[ts(optional = nullable, type = "number | null")]
    pub active_parameters: Option<u64>,
    #[serde(default)]
    #[ts(optional = nullable)]
    pub context_length: Option<u32>,
    /// The format of most weights, such as `q4_k_m`; absent: worked out from bytes and parameters.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub dtype: Option<String>,
}

/// Which model, one of the three; and how it is to be loaded.
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
    /// Precision of the context (`f32`, `f16`, `q8_0`, `q4_0`); absent: as the settings say.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub kv: Option<String>,
}

/// How fast this computer is with weights of one format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct SpeedInfo {
    pub format: String,
    /// Gigabytes of weights that one token can pass through in a second.
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

/// The one model of the catalogue for this computer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Recommendation {
    /// Of the catalogue.
    pub id: String,
    pub reason: String,
    pub fit: ModelFit,
}

/// How a model that lies elsewhere comes into the library.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ImportHow {
    /// It stays where it is.
    #[default]
    Link,
    /// A copy in the application's folder.
    Copy,
    /// Into the application's folder, away from where it was.
    Move,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ImportArgs {
    /// A GGUF file, the first of a split one, or a folder with safetensors, config.json and tokenizer.json.
    pub path: String,
    #[serde(default)]
    pub how: ImportHow,
}

/// How far an import has come. The last one has `done` equal to `total`, or an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ImportProgress {
    pub path: String,
    #[ts(type = "number")]
    pub done_bytes: u64,
    #[ts(type = "number")]
    pub total_bytes: u64,
    pub error: Option<ErrorInfo>,
}

/// A model that was removed, for as long as it can be had back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct RemovedModel {
    pub id: String,
    pub name: String,
    #[ts(type = "number")]
    pub removed_ms: i64,
    /// Bytes that are free once it is gone for good; 0: its files were never ours and stay.
    #[ts(type = "number")]
    pub disk_bytes: u64,
}

/// A folder that is looked through for models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ModelFolder {
    pub path: String,
    pub source: ModelSource,
    /// Models found in it.
    pub models: u32,
    /// Why it can't be read; it stays in the list.
    pub error: Option<ErrorInfo>,
}

/// What the library takes on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct LibraryUse {
    /// Largest first.
    pub models: Vec<ModelUse>,
    /// Of the files that are the application's own, those removed among them.
    #[ts(type = "number")]
    pub owned_bytes: u64,
    /// Of removed ones that can still be had back.
    #[ts(type = "number")]
    pub removed_bytes: u64,
    /// Of the disk that holds the application's folder.
    #[ts(type = "number | null")]
    pub free_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ModelUse {
    pub id: String,
    pub source: ModelSource,
    /// Of all its files.
    #[ts(type = "number")]
    pub disk_bytes: u64,
    /// Of what was made of it for quicker loading.
    #[ts(type = "number")]
    pub made_bytes: u64,
}

/// After a look through all folders.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Scan {
    pub folders: Vec<ModelFolder>,
    pub models: Vec<ModelEntry>,
}
