//! The settings of the library: where models are searched for, and how long they stay in memory.

use serde_json::json;

use super::{MODELS, Setting, integer};
use crate::types::SettingKind;

/// Minutes.
pub const DEFAULT_IDLE_UNLOAD: u32 = 30;

/// The rows of this section.
pub static ROWS: &[Setting] = &[
    Setting {
        key: "other_programs",
        section: MODELS,
        label: "Show models from other programs",
        help: "Lists models in the Hugging Face and LM Studio folders and uses them in place. Nothing is copied or changed.",
        kind: || SettingKind::Toggle,
        default: || json!(true),
    },
    Setting {
        key: "idle_unload",
        section: MODELS,
        label: "Unload after (minutes)",
        help: "Unloads a model that has not been used for this long. It loads again with the next message.",
        kind: || integer(1, 10_080, Some("never")),
        default: || json!(DEFAULT_IDLE_UNLOAD),
    },
];
