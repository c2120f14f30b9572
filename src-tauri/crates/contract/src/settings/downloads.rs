//! The settings of getting models.

use serde_json::{Value, json};

use super::{Setting, choice, integer};
use crate::types::SettingKind;

const DOWNLOADS: &str = "Downloads";

pub static ROWS: &[Setting] = &[
    Setting {
        key: "download_place",
        section: DOWNLOADS,
        label: "Keep models in",
        help: "The shared cache is the one that other programs for Hugging Face models read, so that there is one copy for all.",
        kind: || choice(&[("app", "This program's folder"), ("hub_cache", "The shared Hugging Face cache")]),
        default: || json!("app"),
    },
    Setting {
        key: "download_limit",
        section: DOWNLOADS,
        label: "Speed limit",
        help: "In kilobytes per second, of all downloads together.",
        kind: || integer(1, 1 << 24, Some("none")),
        default: || Value::Null,
    },
    Setting {
        key: "download_connections",
        section: DOWNLOADS,
        label: "Connections",
        help: "How many parts of a file come at once.",
        kind: || integer(1, 16, None),
        default: || json!(4),
    },
    Setting {
        key: "download_patience",
        section: DOWNLOADS,
        label: "Patience",
        help: "In seconds: how long a connection may be silent before a new one is made.",
        kind: || integer(1, 600, None),
        default: || json!(30),
    },
    Setting {
        key: "hub",
        section: DOWNLOADS,
        label: "Hub",
        help: "The address of a mirror of Hugging Face; HF_ENDPOINT counts before it.",
        kind: || SettingKind::Text { placeholder: "https://huggingface.co".into() },
        default: || json!(""),
    },
    Setting {
        key: "trusted_keys",
        section: DOWNLOADS,
        label: "Trusted keys",
        help: "Public keys of minisign, a space between two. Lists of models and files that they signed are held to it.",
        kind: || SettingKind::Text { placeholder: "RW…".into() },
        default: || json!(""),
    },
];
