//! The record of network connections, which the user can read.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionPurpose {
    /// A conversation was sent to a model server.
    Answer,
    /// A server was probed, or its models listed.
    ModelList,
    /// A text was sent for a token count.
    Count,
    /// The hub was searched, or a repository's files listed.
    Search,
    /// A model was fetched.
    Download,
    /// The catalogue was fetched.
    Catalogue,
    /// A tool server was listed or called.
    Tool,
    /// An image was fetched that a client of the server named by its address.
    Image,
    /// The update server was asked for a newer version, or one was fetched.
    Update,
}

/// One outgoing connection, without its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct ConnectionInfo {
    #[ts(type = "number")]
    pub at_ms: i64,
    /// With its port, unless that is the default.
    pub host: String,
    /// Absent: unknown to this version of the program.
    pub purpose: Option<ConnectionPurpose>,
    /// Bytes of content, without encryption and headers.
    #[ts(type = "number")]
    pub sent: u64,
    #[ts(type = "number")]
    pub received: u64,
}

/// Requests the newest entries of the connection record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ConnectionsArgs {
    /// Maximum entries; absent: 1000.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub limit: Option<u32>,
}
