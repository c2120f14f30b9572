//! The settings of the library: where models are looked for, and how long they stay in memory.

use serde_json::json;

use super::{MODELS, Setting, integer};
use crate::types::SettingKind;

/// Minutes.
pub const DEFAULT_IDLE_UNLOAD: u32 = 30;

pub static ROWS: &[Setting] = &[
    Setting {
        key: "other_programs",
        section: MODELS,
        label: "Show other programs' models",
        help: "Models in the caches of Hugging Face and LM Studio are listed and read where they are; nothing is copied or changed.",
        kind: || SettingKind::Toggle,
        default: || json!(true),
    },
    Setting {
        key: "idle_unload",
        section: MODELS,
        label: "Unload after",
        help: "Minutes after which a model that nobody asks leaves memory. The next question loads it again.",
        kind: || integer(1, 10_080, Some("never")),
        default: || json!(DEFAULT_IDLE_UNLOAD),
    },
];
