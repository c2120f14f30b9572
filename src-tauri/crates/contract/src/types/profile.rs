//! Where the time of an answer goes.

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

/// An operation, of all layers together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ProfileRow {
    /// "matmul"; "rest": what no operation took.
    pub op: String,
    /// "attention.q+k+v Q4_K 2048→3072"
    pub what: String,
    /// A graphics card computed it, and told how long by its own clock; else the processor did.
    pub on_card: bool,
    #[ts(type = "number")]
    pub calls: u64,
    pub ms: f64,
    /// Of the phase's time, between 0 and 1.
    pub share: f64,
    /// Read and written by all calls: weights, keys and values once each.
    #[ts(type = "number")]
    pub bytes: u64,
    /// None: nothing is read that counts.
    pub gb_s: Option<f64>,
}

/// What took longest comes first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ProfilePart {
    pub phase: ProfilePhase,
    pub ms: f64,
    pub rows: Vec<ProfileRow>,
}

/// Of one answer, or of several that were written together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ProfiledAnswer {
    /// Library id of the model.
    pub model: String,
    /// Phases without any work are left out.
    pub parts: Vec<ProfilePart>,
    /// Steps for which the trace had no room.
    #[ts(type = "number")]
    pub n_left_out: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ProfileInfo {
    /// Answers that are asked for from now on are measured.
    pub is_on: bool,
    /// The last one that was.
    pub answer: Option<ProfiledAnswer>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ProfileSwitchArgs {
    pub on: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ProfileTraceArgs {
    /// A file that it is written to. None: it comes back as a text.
    #[serde(default)]
    #[ts(optional)]
    pub path: Option<String>,
}
