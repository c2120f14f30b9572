//! Inference engine: from a model file to a spec, a graph, a tokenizer and a template; from requests to batches; from
//! logits to tokens and text.
//!
//! No async, no network, no globals, no clock. Touches only paths that the caller passes in.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod adapter;
pub mod arch;
pub mod budget;
pub mod capabilities;
pub mod constraint;
pub mod convert;
pub mod decoder;
pub mod error;
pub mod generate;
pub mod kv;
pub mod logprobs;
pub mod memory_estimate;
pub mod model;
pub mod perplexity;
pub mod reply;
pub mod sampler;
pub mod scheduler;
pub mod shape;
pub mod spec;
pub mod speculate;
pub mod stop;
pub mod template;
pub mod tokenizer;
pub mod train;
pub mod vision;

pub use adapter::Adapter;
pub use error::{EngineError, Result};
pub use generate::{Generation, generate};
pub use kernels::{
    BackendKind, CpuPrecision, FaultPlan, GpuFault, Interrupt, KvDType, KvPrecision, LaneReduction,
    MonotonicClock, Precision, SubmissionStats, WeightBudget,
};
pub use kv::sequence_id::SequenceId;
pub use model::{
    AssistantFile, AttentionEviction, Chunk, Devices, DraftBlockUse, EvictingPrefill, GpuFallback, GpuHealth,
    GpuIncident, LoadOptions, Logits, LogitsSelection, Model, ModelInfo, PassageScore, RopeScaling,
    VisionFile,
};
pub use sampler::Sampling;
pub use scheduler::{Finish, GenEvent, GenerationStats, Request, Scheduler};
pub use tokenizer::TokenId;
