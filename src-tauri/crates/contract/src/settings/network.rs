//! The network settings. Enforced by the gate of `net`.

use serde_json::json;

use super::{Setting, choice, integer};
use crate::types::SettingKind;

const NETWORK: &str = "Network";

/// The rows of this section.
pub static ROWS: &[Setting] = &[
    Setting {
        key: "offline",
        section: NETWORK,
        label: "Offline mode",
        help: "Blocks connections to other servers and Hugging Face: no remote answers, model search or downloads. Running downloads pause.",
        kind: || SettingKind::Toggle,
        default: || json!(false),
    },
    Setting {
        key: "endpoint_silence",
        section: NETWORK,
        label: "Server timeout (seconds)",
        help: "Disconnects from another server if it sends nothing for this long while answering.",
        kind: || integer(1, 3600, None),
        default: || json!(120),
    },
    Setting {
        key: "key_place",
        section: NETWORK,
        label: "Store keys in",
        help: "Where API keys of other servers and your Hugging Face token are stored.",
        kind: || {
            let file = "Encrypted file in the data folder";
            choice(&[("auto", "System keychain, or an encrypted file if unavailable"), ("file", file)])
        },
        default: || json!("auto"),
    },
];
