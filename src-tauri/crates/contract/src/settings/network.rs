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
        help: "Blocks connections to other servers and Hugging Face: no remote answers, model search, downloads or update checks. Running downloads pause.",
        kind: || SettingKind::Toggle,
        default: || json!(false),
    },
    Setting {
        key: "proxy",
        section: NETWORK,
        label: "Proxy",
        help: "Address of the proxy for Hugging Face, other servers, tool servers and updates. Empty: the system's. Hosts in NO_PROXY are reached directly. A password in the address is stored unencrypted.",
        kind: || SettingKind::Text { placeholder: "http://proxy.example:8080".into() },
        default: || json!(""),
    },
    Setting {
        key: "check_updates",
        section: NETWORK,
        label: "Check for updates",
        help: "Asks the update server for a newer version each time the window starts. Only a request for one file is sent. Nothing is downloaded before you agree.",
        kind: || SettingKind::Toggle,
        default: || json!(false),
    },
    Setting {
        key: "audit_log",
        section: NETWORK,
        label: "Audit log",
        help: "Records every answer in audit/audit.jsonl in the data folder: time, interface, key, model and token counts.",
        kind: || SettingKind::Toggle,
        default: || json!(true),
    },
    Setting {
        key: "audit_text",
        section: NETWORK,
        label: "Answers in the audit log",
        help: "Also records the text of every answer.",
        kind: || SettingKind::Toggle,
        default: || json!(false),
    },
    Setting {
        key: "allow_image_urls",
        section: NETWORK,
        label: "Fetch images by address",
        help: "Programs that use the server may send the web address of an image instead of the image. Addresses of your own network let them reach devices that only this computer can reach.",
        kind: || {
            let public = "From the public internet";
            choice(&[("off", "Never"), ("public", public), ("any", "From my own network, too")])
        },
        default: || json!("off"),
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
