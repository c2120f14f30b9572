//! What the user requests of the processor: threads, and their placement.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where threads run and memory lies on a computer with several memory nodes (NUMA).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NumaPolicy {
    /// The operating system places them.
    #[default]
    Off,
    /// All threads and what they need on one node, so that memory is local.
    Node,
    /// Threads and memory alternate between nodes, for the bandwidth of all of them together.
    Spread,
}

/// The user's choices for the processor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuRequest {
    /// Folder that caches the kernel check and the measured thread count. None: nothing is checked or cached.
    pub folder: Option<PathBuf>,
    /// None: one per performance core.
    pub threads: Option<usize>,
    /// Binds threads to processors.
    pub affinity: bool,
    /// Placement on several memory nodes.
    pub numa: NumaPolicy,
}
