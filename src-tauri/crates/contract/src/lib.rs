//! The API boundary: types that cross an edge or a process, errors, the settings table and the limits.
//!
//! Plain data, serialisable, without logic. Depends on no other crate of ours but `io`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod catalog_offer;
mod compaction_method;
mod cpu_request;
pub mod error;
mod finding;
mod generation;
mod gpu_request;
pub mod limits;
mod model_facts;
#[allow(missing_docs, reason = "fields are documented where their names don't say it")]
pub mod protocol;
mod responder;
pub mod settings;
#[allow(missing_docs, reason = "fields are documented where their names don't say it")]
pub mod types;

pub use catalog_offer::{CatalogOffer, ModelStrength};
pub use compaction_method::CompactionMethod;
pub use cpu_request::{CpuRequest, NumaPolicy};
pub use error::{Error, ErrorKind, Result};
pub use finding::Finding;
pub use generation::{
    DraftLength, DraftSource, DrySampling, KvAging, LogitBias, RopeScaling, Sampling, Speculation,
    XtcSampling, nearest_f32,
};
pub use gpu_request::{GpuFaultKind, GpuRequest, GpuSpread, PlannedGpuFault};
pub use model_facts::{KvLayerGroup, ModelFacts, ModelSizes, TemplateCapabilities, ThinkingSupport};
pub use responder::Responder;

/// Library id of the model inside the program.
pub const STARTER_ID: &str = "starter";
