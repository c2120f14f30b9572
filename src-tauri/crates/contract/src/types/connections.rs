//! What went over the network: the record that a user can read.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What a connection was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionPurpose {
    /// A conversation was sent to a server that answers.
    Answer,
    /// A server was asked which models it has, or whether it is there.
    ModelList,
    /// A text was sent to be counted in tokens.
    Count,
    /// The hub was searched, or asked about files.
    Search,
    /// A model was fetched.
    Download,
    /// The catalogue was fetched.
    Catalogue,
    /// A server of tools was asked what it has, or to do something.
    Tool,
}

/// One connection to elsewhere. Never what was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ConnectionInfo {
    #[ts(type = "number")]
    pub at_ms: i64,
    /// With its port, where it isn't the usual one.
    pub host: String,
    /// Absent: of another version of this program.
    pub purpose: Option<ConnectionPurpose>,
    /// Bytes, of what was said: encryption and headers come on top.
    #[ts(type = "number")]
    pub sent: u64,
    #[ts(type = "number")]
    pub received: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ConnectionsArgs {
    /// How many of the newest; absent: a thousand.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub limit: Option<u32>,
}
