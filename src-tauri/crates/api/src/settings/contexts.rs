//! The settings of what becomes of contexts after their turn.

use serde_json::json;

use super::{Setting, integer};

const CONTEXTS: &str = "Contexts";

pub static ROWS: &[Setting] = &[
    Setting {
        key: "context_store_every",
        section: CONTEXTS,
        label: "Store contexts",
        help: "After how many answers a conversation's context is stored, so that it goes on at once after a restart.",
        kind: || integer(1, 1000, Some("never")),
        default: || json!(1),
    },
    Setting {
        key: "context_disk",
        section: CONTEXTS,
        label: "Disk for contexts",
        help: "In megabytes. What was used longest ago goes first; words are never lost.",
        kind: || integer(0, 1 << 24, None),
        default: || json!(10 << 10),
    },
    Setting {
        key: "idle_memory",
        section: CONTEXTS,
        label: "Memory for idle contexts",
        help: "In megabytes, for each model: contexts of conversations that nobody is asking right now.",
        kind: || integer(0, 1 << 24, None),
        default: || json!(1 << 10),
    },
];
