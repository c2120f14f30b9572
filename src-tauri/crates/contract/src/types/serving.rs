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

/// The HTTP server of this window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct LocalServer {
    /// The caller may start and stop it: it is the window, not a page that a server shows.
    pub can_control: bool,
    /// While it listens.
    pub listening: Option<ListeningServer>,
}

/// A server that listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ListeningServer {
    pub port: u16,
    /// Other devices may connect.
    pub for_devices: bool,
    /// Its address on this computer, such as `http://127.0.0.1:8642`.
    pub url: String,
    /// Its address for other devices. Null: they may not connect, or this computer has no network.
    pub device_url: Option<String>,
    /// What programs send as `Authorization: Bearer KEY`.
    pub key: String,
    /// The newest requests, the latest first.
    pub requests: Vec<ServedRequest>,
}

/// A request that a server was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ServedRequest {
    #[ts(type = "number")]
    pub id: u64,
    #[ts(type = "number")]
    pub at_ms: i64,
    pub method: String,
    pub path: String,
    /// HTTP status; null: it has no answer yet.
    pub status: Option<u16>,
    /// Milliseconds until its answer began.
    pub duration_ms: u32,
}
