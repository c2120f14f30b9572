//! The settings of what becomes of contexts after their turn.

use engine::kv::requantize::{DEFAULT_REQUANTIZE_AFTER_TOKENS, MIN_EXACT_TOKENS};
use serde_json::json;

use super::{Setting, choice, integer};

const CONTEXTS: &str = "Contexts";

pub static ROWS: &[Setting] = &[
    Setting {
        key: "kv_aging",
        section: CONTEXTS,
        label: "Old parts of long contexts",
        help: "Kept in 8-bit blocks they take about half the memory, and answers may differ a little. Only contexts of 16 or 32 bits age. A graphics card keeps the room of what was exact, and makes more for what ages.",
        kind: || {
            choice(&[
                ("off", "Stay exact"),
                ("pressure", "Age before a context has to leave memory"),
                ("after", "Age by their distance from the end"),
            ])
        },
        default: || json!("off"),
    },
    Setting {
        key: "kv_aging_after",
        section: CONTEXTS,
        label: "Newest tokens that stay exact",
        help: "Where old parts age by their distance from the end: so many tokens before it.",
        kind: || integer(MIN_EXACT_TOKENS as i64, 1_048_576, None),
        default: || json!(DEFAULT_REQUANTIZE_AFTER_TOKENS),
    },
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
    Setting {
        key: "idle_minutes",
        section: CONTEXTS,
        label: "Idle contexts leave memory",
        help: "In minutes without a question. They are stored first, and come back with the next one.",
        kind: || integer(1, 10_080, Some("when memory is needed")),
        default: || json!(30),
    },
];
