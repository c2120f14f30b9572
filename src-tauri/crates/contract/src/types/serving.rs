//! The local server, as it is seen from beside it.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Whether a server of this data folder listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ServerState {
    Off,
    /// In ascending order: several may listen, each on a port of its own.
    Running {
        ports: Vec<u16>,
    },
    /// It ended without a word since this program began: it crashed, or was killed.
    Failed {
        port: u16,
    },
}
