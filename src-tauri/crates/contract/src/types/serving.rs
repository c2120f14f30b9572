//! The state of the local server, as other processes see it.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Whether a server of this data folder is listening.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ServerState {
    Off,
    /// In ascending order: several may listen, each on a separate port.
    Running {
        ports: Vec<u16>,
    },
    /// It crashed or was killed since this program started.
    Failed {
        port: u16,
    },
}
