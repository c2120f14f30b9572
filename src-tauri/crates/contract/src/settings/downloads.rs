//! The settings for model downloads.

use serde_json::{Value, json};

use super::{Setting, choice, integer};
use crate::types::SettingKind;

const DOWNLOADS: &str = "Downloads";

/// The rows of this section.
pub static ROWS: &[Setting] = &[
    Setting {
        key: "download_place",
        section: DOWNLOADS,
        label: "Download folder",
        help: "The shared cache is also used by other programs for Hugging Face models, so each model is stored only once.",
        kind: || choice(&[("app", "Inglenook folder"), ("hub_cache", "Shared Hugging Face cache")]),
        default: || json!("app"),
    },
    Setting {
        key: "download_limit",
        section: DOWNLOADS,
        label: "Download speed limit (KB/s)",
        help: "For all downloads together.",
        kind: || integer(1, 1 << 24, Some("none")),
        default: || Value::Null,
    },
    Setting {
        key: "download_connections",
        section: DOWNLOADS,
        label: "Connections per file",
        help: "Number of parts of a file that download at the same time.",
        kind: || integer(1, 16, None),
        default: || json!(4),
    },
    Setting {
        key: "download_patience",
        section: DOWNLOADS,
        label: "Connection timeout (seconds)",
        help: "Reconnects if no data arrives for this long.",
        kind: || integer(1, 600, None),
        default: || json!(30),
    },
    Setting {
        key: "hub",
        section: DOWNLOADS,
        label: "Hugging Face address",
        help: "Address of a mirror. HF_ENDPOINT takes precedence.",
        kind: || SettingKind::Text { placeholder: "https://huggingface.co".into() },
        default: || json!(""),
    },
    Setting {
        key: "trusted_keys",
        section: DOWNLOADS,
        label: "Trusted keys",
        help: "Minisign public keys, separated by spaces. Model lists and files signed with them are verified.",
        kind: || SettingKind::Text { placeholder: "RW…".into() },
        default: || json!(""),
    },
];
