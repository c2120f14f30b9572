//! The worker protocol, requests and events: closed, plain, serialisable data, so that the worker
//! can be a thread or a child process.

mod compaction;
mod constraint;
mod contexts;
mod count;
mod embed;
mod facts;
mod fit;
mod image;
mod kv;
mod load;
mod logprobs;
mod pages;
mod profiled;
mod prompt;
mod vocabulary;

use serde::{Deserialize, Serialize};

pub use crate::CompactionMethod as Strategy;
use crate::Error;
pub use crate::ModelFacts as Facts;
use crate::limits::Bounds;
pub use crate::types::Finish;
use crate::types::{GuideReply, ImageInfo};
pub use crate::{Sampling, Speculation};
pub use compaction::{CompactedRange, Compression, SummaryTask, SummaryText};
pub use constraint::Constraint;
pub use contexts::{
    Checkpoints, ContextRetention, Hits, KvStats, ModelKv, PoolKv, PrefetchRequest, StoredFile,
};
pub use count::{CountRequest, TokenCounts};
pub use embed::{EmbedAs, EmbedInput, EmbedRequest, EmbeddingBatch, PassageScores, RankRequest};
pub use facts::RunFacts;
pub use fit::{FitOutcome, FitRequest};
pub use image::{Base64Text, ImageDetail, ImageSource, PromptImage};
pub use kv::{Kv, KvFormat};
pub use load::{LoadSpec, Quantize};
pub use logprobs::{LogprobsRequest, ProbabilityReport, ProbabilityStage, TokenAlternatives, TokenShare};
pub use pages::{PageImage, PageImages, RenderRequest};
pub use profiled::MeasuredAnswer;
pub use prompt::{ChatOptions, Ids, Prompt, PromptMessage};
pub use vocabulary::{
    GapText, PromptPart, SpecialTokens, TokenPiece, VocabularyAnswer, VocabularyDescription, VocabularyQuery,
    VocabularyRequest,
};

/// The location of a model's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Location {
    /// Inside the program.
    BuiltIn,
    /// A file or folder.
    Path(String),
    /// On the endpoints of this name, under the servers' name for it. Never used by the worker.
    Remote { name: String, model: String },
}

/// A model, identified by its library id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRef {
    pub id: String,
    pub location: Location,
}

/// The compute backend; `Gpu` may be a software adapter, `Scalar` is the reference kernels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    #[default]
    Auto,
    Cpu,
    Gpu,
    Scalar,
}

/// Operand precision of GPU matrix products: `kernels::Precision`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuPrecision {
    #[default]
    Auto,
    F32,
    F16,
    Matrices,
}

/// How tokens are drafted for speculative decoding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speculate {
    Off,
    /// By lookup in the earlier text.
    #[default]
    Lookup,
    /// By a draft model.
    Draft,
}

/// A request to the worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WorkerRequest {
    Generate(Box<GenerateRequest>),
    /// Ends a turn before its next token. Unknown turns are ignored.
    Cancel {
        turn: String,
    },
    /// Frees a model; its active turns are cancelled.
    Unload {
        model: String,
    },
    /// Frees a conversation's cached contexts.
    Forget {
        conversation: String,
    },
    /// Stores a conversation's context now.
    Store {
        request: u64,
        conversation: String,
        keeping: ContextRetention,
    },
    /// Brings a conversation's context into memory ahead of need, if its model is loaded and idle.
    Prefetch(Box<PrefetchRequest>),
    /// Requests memory use and cache hits of contexts.
    KvStats {
        request: u64,
    },
    /// Opens a file, checks it completely, and describes it.
    Inspect {
        request: u64,
        location: Location,
    },
    /// Counts the tokens of a prompt.
    Count {
        request: u64,
        count: Box<CountRequest>,
    },
    /// Asks a model's vocabulary.
    Vocabulary {
        request: u64,
        vocabulary: Box<VocabularyRequest>,
    },
    /// Requests each token's probability in an answer, and its alternatives.
    Logprobs {
        request: u64,
        logprobs: Box<LogprobsRequest>,
    },
    /// Computes text embeddings.
    Embed {
        request: u64,
        embed: Box<EmbedRequest>,
    },
    /// Scores how well passages answer a query.
    Rank {
        request: u64,
        rank: Box<RankRequest>,
    },
    /// Shortens a prompt, or names a summary worth making, without answering.
    Fit {
        request: u64,
        fit: Box<FitRequest>,
    },
    /// Requests the scanned pages of a PDF as images.
    RenderPages {
        request: u64,
        render: Box<RenderRequest>,
    },
    /// Requests the size and the thumbnail of an image's file.
    ReadImage {
        request: u64,
        file: Base64Text,
    },
    Stop,
}

impl WorkerRequest {
    /// Whether a remote model is requested.
    pub fn is_remote(&self) -> bool {
        let model = match self {
            Self::Generate(request) => &request.model,
            Self::Count { count, .. } => &count.model,
            Self::Fit { fit, .. } => &fit.count.model,
            Self::Prefetch(request) => &request.model,
            Self::Cancel { .. }
            | Self::Unload { .. }
            | Self::Forget { .. }
            | Self::Store { .. }
            | Self::KvStats { .. }
            | Self::Inspect { .. }
            | Self::Logprobs { .. }
            | Self::Vocabulary { .. }
            | Self::Embed { .. }
            | Self::Rank { .. }
            | Self::RenderPages { .. }
            | Self::ReadImage { .. }
            | Self::Stop => return false,
        };
        matches!(model.location, Location::Remote { .. })
    }
}

/// A turn to answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GenerateRequest {
    pub turn: String,
    pub model: ModelRef,
    pub load: LoadSpec,
    /// Key of its cached context, which the next request with the same key reuses.
    pub conversation: Option<String>,
    pub prompt: Prompt,
    pub sampling: Sampling,
    /// None: until the model ends its answer or the context is full.
    pub max_tokens: Option<usize>,
    pub stop: Vec<String>,
    pub ignore_eos: bool,
    pub chat: ChatOptions,
    /// None: any text.
    #[serde(default)]
    pub constraint: Option<Constraint>,
    /// None: no probabilities.
    #[serde(default)]
    pub logprobs: Option<ProbabilityReport>,
    /// None: one token per step.
    #[serde(default)]
    pub speculation: Option<Speculation>,
    /// None: a prompt that doesn't fit is refused.
    #[serde(default)]
    pub compression: Option<Compression>,
    /// Tokens of this answer so far; generation continues after them.
    #[serde(default)]
    pub had: Option<Ids>,
    /// None: a new answer.
    #[serde(default)]
    pub resume: Option<Resume>,
    #[serde(default)]
    pub bounds: Bounds,
    /// None: as in the previous request.
    #[serde(default)]
    pub keeping: Option<ContextRetention>,
    /// Whether the turn reports a profile.
    #[serde(default)]
    pub profile: bool,
}

/// The state of an answer whose worker was lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// All its tokens; they are reported again before the next ones.
    pub ids: Vec<u32>,
    /// Wall-clock time of its request, so that the template renders the same date again.
    pub asked_ms: i64,
}

/// An event from the worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WorkerEvent {
    Turn {
        turn: String,
        step: Step,
    },
    Model {
        id: String,
        state: LoadState,
    },
    Inspected {
        request: u64,
        outcome: Result<Facts, Error>,
    },
    TokenCounts {
        request: u64,
        outcome: Result<TokenCounts, Error>,
    },
    TokenAlternatives {
        request: u64,
        outcome: Result<Vec<TokenAlternatives>, Error>,
    },
    VocabularyAnswer {
        request: u64,
        outcome: Result<VocabularyAnswer, Error>,
    },
    FitOutcome {
        request: u64,
        outcome: Result<FitOutcome, Error>,
    },
    EmbeddingBatch {
        request: u64,
        outcome: Result<EmbeddingBatch, Error>,
    },
    PassageScores {
        request: u64,
        outcome: Result<PassageScores, Error>,
    },
    PageImages {
        request: u64,
        outcome: Result<PageImages, Error>,
    },
    /// None: the file is no image.
    ImageInfo {
        request: u64,
        outcome: Result<Option<ImageInfo>, Error>,
    },
    Checkpoints(Box<Checkpoints>),
    /// The resource use of a turn that ended.
    RunFacts(RunFacts),
    /// The profile of a turn that is about to end.
    MeasuredAnswer(Box<MeasuredAnswer>),
    /// Names of the files that restore the whole context. None: it is not in memory.
    Stored {
        request: u64,
        outcome: Result<Option<Vec<String>>, Error>,
    },
    KvStats {
        request: u64,
        stats: KvStats,
    },
}

/// A step of a turn. The last one is always `Done` or `Failed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Step {
    /// Waits behind `position` others.
    Queued {
        position: u32,
    },
    Loading {
        fraction: f32,
    },
    /// The model has begun, with the exact text of the answer so far. Comes again where text turns out to be
    /// reasoning: this replaces what came before.
    Began {
        /// Tokens so far, with their vocabulary.
        had: Ids,
        text: String,
        reasoning: String,
    },
    Prefill {
        done: u32,
        total: u32,
    },
    /// Something was left out of the prompt.
    Compacted {
        range: CompactedRange,
    },
    /// The turn needs a summary first; it has to be requested again.
    Wanting {
        request: Box<GenerateRequest>,
        wanted: Box<SummaryTask>,
    },
    /// A token was generated; both texts may be empty.
    Token {
        id: u32,
        text: String,
        reasoning: String,
        /// Of the tokens whose text this is, where the request wants them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        logprobs: Vec<TokenAlternatives>,
    },
    /// The model wants a tool called.
    ToolCall {
        id: String,
        name: String,
        /// A JSON object; the beginning of one where the answer was cut.
        arguments: String,
    },
    /// Something the user should know though nothing failed.
    Notice {
        error: Error,
    },
    /// Text held back until the end.
    Rest {
        text: String,
        reasoning: String,
        /// As in `Token`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        logprobs: Vec<TokenAlternatives>,
    },
    Done(Box<TurnResult>),
    Failed {
        error: Error,
    },
}

/// The figures of a finished turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnResult {
    pub finish: Finish,
    /// The answer ended with tool calls.
    pub called: bool,
    pub prompt_tokens: u32,
    pub reused_tokens: u32,
    pub generated_tokens: u32,
    /// Tokens drafted and verified, and those accepted.
    pub drafted_tokens: u32,
    pub accepted_tokens: u32,
    pub context_limit: u32,
    pub load_ms: f64,
    /// From the request's arrival to the first token, loading included.
    pub ttft_ms: f64,
    pub prefill_tok_s: f64,
    pub decode_tok_s: f64,
    /// Tokens of the images that the vision tower saw for it, and how long that took.
    #[serde(default)]
    pub image_tokens: u32,
    #[serde(default)]
    pub image_ms: f64,
    /// Ids of the answer's text, without its reasoning and its end.
    pub log: Ids,
    /// All generated tokens, markup included, without the end token.
    #[serde(default)]
    pub whole: Vec<u32>,
    /// The counts are estimates; and the remote host that answered, if any.
    #[serde(default)]
    pub is_about: bool,
    #[serde(default)]
    pub answered_by: Option<String>,
    /// The stop text that ended the answer: its place in the request's list.
    #[serde(default)]
    pub stop_index: Option<u32>,
    /// What the user guide answered with. Never set by a worker.
    #[serde(default)]
    pub guide: Option<GuideReply>,
}

impl TurnResult {
    /// The end of a turn that was cancelled before its model saw it.
    pub fn never_started() -> Self {
        Self {
            finish: Finish::Cancelled,
            called: false,
            prompt_tokens: 0,
            reused_tokens: 0,
            generated_tokens: 0,
            drafted_tokens: 0,
            accepted_tokens: 0,
            context_limit: 0,
            load_ms: 0.0,
            ttft_ms: 0.0,
            prefill_tok_s: 0.0,
            decode_tok_s: 0.0,
            image_tokens: 0,
            image_ms: 0.0,
            log: Ids { fingerprint: String::new(), ids: Vec::new() },
            whole: Vec::new(),
            is_about: false,
            answered_by: None,
            stop_index: None,
            guide: None,
        }
    }
}

/// Whether a model is in memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum LoadState {
    Loading { fraction: f32 },
    Ready,
    Unloaded,
    Failed { error: Error },
}
