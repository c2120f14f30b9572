//! What the user requests of GPUs, and the faults that tests plan for them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::protocol::GpuPrecision;

/// The user's choices for GPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuRequest {
    /// Layers on the GPUs. None: as many as fit.
    pub layers: Option<usize>,
    /// Bytes of each GPU's memory that a model may take. None: most of it.
    pub memory: Option<u64>,
    /// Precision of matrix multiplications.
    #[serde(default)]
    pub precision: GpuPrecision,
    /// GPUs by number or by a part of their name. Empty: the best one.
    pub devices: Vec<String>,
    /// How several GPUs share a model.
    #[serde(default)]
    pub spread: GpuSpread,
    /// Folder that caches compiled pipelines. None: they are not cached.
    pub cache: Option<PathBuf>,
    /// A fault that a test injects.
    #[serde(default)]
    pub fault: Option<PlannedGpuFault>,
}

/// How several GPUs share a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuSpread {
    /// A copy on each GPU where it is known to fit, else layers.
    #[default]
    Auto,
    /// Some layers on each.
    Layers,
    /// A whole copy on each: sequences are spread over them.
    Copies,
}

/// A GPU fault that a test plans, as plain data: it has to reach the process that computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedGpuFault {
    /// What fails.
    pub kind: GpuFaultKind,
    /// The submission before which it happens, counted from 0 for each load of a model; later ones follow at the same
    /// distance.
    pub before: u64,
    /// Number of faults.
    pub n_times: u64,
}

/// What a planned fault does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuFaultKind {
    /// The device is lost.
    Lost,
    /// It is out of memory.
    Memory,
    /// It refuses a command as invalid.
    Invalid,
    /// It does not finish in time.
    TimeOut,
    /// It computes wrong numbers.
    Wrong,
}
