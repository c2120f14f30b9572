//! The limits of one turn and of all together. Enforced in `limits.rs`.

use serde_json::{Value, json};

use super::{Setting, choice, integer};
use crate::types::SettingKind;

const LIMITS: &str = "Limits";

/// The rows of this section.
pub static ROWS: &[Setting] = &[
    Setting {
        key: "limits",
        section: LIMITS,
        label: "Limits",
        help: "Strict suits servers open to strangers: prompts up to 2,048 tokens and 10,000 characters, answers up to 512 tokens and 30 seconds, 32 at a time.",
        kind: || choice(&[("own", "Custom"), ("bounded", "Strict")]),
        default: || json!("own"),
    },
    Setting {
        key: "limit_prompt_tokens",
        section: LIMITS,
        label: "Maximum prompt length",
        help: "In tokens, including the whole chat.",
        kind: || integer(1, 1_048_576, Some("context length")),
        default: || Value::Null,
    },
    Setting {
        key: "limit_characters",
        section: LIMITS,
        label: "Maximum message length",
        help: "In characters.",
        kind: || integer(1, 16 << 20, Some("no limit")),
        default: || Value::Null,
    },
    Setting {
        key: "limit_answer_tokens",
        section: LIMITS,
        label: "Maximum answer length",
        help: "In tokens. Requests for longer answers are cut to this length.",
        kind: || integer(1, 1_048_576, Some("until the context is full")),
        default: || Value::Null,
    },
    Setting {
        key: "limit_seconds",
        section: LIMITS,
        label: "Answer timeout (seconds)",
        help: "Includes time in the queue. What was written until then is kept.",
        kind: || integer(1, 86_400, Some("none")),
        default: || Value::Null,
    },
    Setting {
        key: "limit_concurrent",
        section: LIMITS,
        label: "Concurrent answers",
        help: "More requests wait in the queue.",
        kind: || integer(1, 32, None),
        default: || json!(32),
    },
    Setting {
        key: "limit_waiting",
        section: LIMITS,
        label: "Queue length",
        help: "When the queue is full, requests are rejected.",
        kind: || integer(0, 1024, None),
        default: || json!(256),
    },
    Setting {
        key: "api_model_alias",
        section: LIMITS,
        label: "Accept any model name",
        help: "Requests that name an unknown model are answered by the default model instead of an error.",
        kind: || SettingKind::Toggle,
        default: || json!(false),
    },
    Setting {
        key: "context_memory",
        section: LIMITS,
        label: "Memory for contexts (MB)",
        help: "For all chats of a model together. One full context always fits.",
        kind: || integer(1, 1 << 24, Some("part of the free memory")),
        default: || Value::Null,
    },
];
