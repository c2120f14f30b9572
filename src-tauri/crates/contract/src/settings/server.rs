//! The settings of the window's HTTP server.

use serde_json::json;

use super::{Setting, integer};
use crate::types::SettingKind;

const SERVER: &str = "Server";

/// Port where the user names none.
pub const DEFAULT_SERVER_PORT: u16 = 8642;

/// The rows of this section.
pub static ROWS: &[Setting] = &[
    Setting {
        key: "server_port",
        section: SERVER,
        label: "Port",
        help: "Programs reach the server at this port of this computer.",
        kind: || integer(1, 65_535, None),
        default: || json!(DEFAULT_SERVER_PORT),
    },
    Setting {
        key: "server_devices",
        section: SERVER,
        label: "Allow other devices",
        help: "Phones and computers in your network can connect with the key. The connection is not encrypted (HTTP), so turn this on only in networks you trust.",
        kind: || SettingKind::Toggle,
        default: || json!(false),
    },
    Setting {
        key: "server_start",
        section: SERVER,
        label: "Start with the window",
        help: "Starts the server whenever the window opens.",
        kind: || SettingKind::Toggle,
        default: || json!(false),
    },
];
