//! Profiles of an answer's time.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What a model computed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ProfilePhase {
    /// the prompt
    Reading,
    /// the answer
    Writing,
}

/// An operation, summed over all layers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ProfileRow {
    /// "matmul"; "rest": time outside all operations.
    pub op: String,
    /// "attention.q+k+v Q4_K 2048→3072"
    pub what: String,
    /// Computed and timed by a GPU; else by the processor.
    pub on_card: bool,
    #[ts(type = "number")]
    pub calls: u64,
    pub ms: f64,
    /// Of the phase's time, between 0 and 1.
    pub share: f64,
    /// Bytes read and written by all calls: weights, keys and values once each.
    #[ts(type = "number")]
    pub bytes: u64,
    /// None: no relevant reads.
    pub gb_s: Option<f64>,
}

/// Rows of a phase, slowest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ProfilePart {
    pub phase: ProfilePhase,
    pub ms: f64,
    pub rows: Vec<ProfileRow>,
}

/// The profile of one answer, or of several from one batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ProfiledAnswer {
    /// Library id of the model.
    pub model: String,
    /// Phases without work are omitted.
    pub parts: Vec<ProfilePart>,
    /// Steps beyond the trace's capacity.
    #[ts(type = "number")]
    pub n_left_out: u64,
}

/// The state of profiling, and the last profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ProfileInfo {
    /// New answers are measured.
    pub is_on: bool,
    /// The last measured answer.
    pub answer: Option<ProfiledAnswer>,
}

/// Switches profiling on or off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ProfileSwitchArgs {
    pub on: bool,
}

/// Exports the last trace, as text or to a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ProfileTraceArgs {
    /// The file to write. None: it is returned as text.
    #[serde(default)]
    #[ts(optional)]
    pub path: Option<String>,
}
