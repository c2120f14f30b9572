//! The settings for contexts after their turn.

use serde_json::json;

use super::{Setting, choice, integer};
use crate::KvAging;

const CONTEXTS: &str = "Context cache";

/// The rows of this section.
pub static ROWS: &[Setting] = &[
    Setting {
        key: "kv_aging",
        section: CONTEXTS,
        label: "Compress older KV cache",
        help: "Stores older tokens in 8-bit, which takes about half the memory; answers may differ slightly. Applies to 16-bit and 32-bit caches. A GPU keeps its full-precision memory and allocates more for the compressed part.",
        kind: || {
            choice(&[
                ("off", "Off"),
                ("pressure", "When memory runs low"),
                ("after", "Beyond the newest tokens"),
            ])
        },
        default: || json!("off"),
    },
    Setting {
        key: "kv_aging_after",
        section: CONTEXTS,
        label: "Uncompressed tokens",
        help: "Number of newest tokens that keep full precision when older ones are compressed.",
        kind: || integer(KvAging::MIN_EXACT_TOKENS as i64, 1_048_576, None),
        default: || json!(KvAging::DEFAULT_AFTER_TOKENS),
    },
    Setting {
        key: "context_store_every",
        section: CONTEXTS,
        label: "Save context every (answers)",
        help: "Saves a chat's context to disk so that it continues right away after a restart.",
        kind: || integer(1, 1000, Some("never")),
        default: || json!(1),
    },
    Setting {
        key: "context_disk",
        section: CONTEXTS,
        label: "Disk space for contexts (MB)",
        help: "When full, the least recently used contexts are removed. Messages are never lost.",
        kind: || integer(0, 1 << 24, None),
        default: || json!(10 << 10),
    },
    Setting {
        key: "idle_memory",
        section: CONTEXTS,
        label: "Memory for idle contexts (MB)",
        help: "Per model, for chats that aren't generating right now.",
        kind: || integer(0, 1 << 24, None),
        default: || json!(1 << 10),
    },
    Setting {
        key: "idle_minutes",
        section: CONTEXTS,
        label: "Unload idle contexts after (minutes)",
        help: "They are saved to disk first and come back with the next message.",
        kind: || integer(1, 10_080, Some("when memory is needed")),
        default: || json!(30),
    },
];
