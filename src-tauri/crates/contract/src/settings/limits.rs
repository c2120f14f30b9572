//! The settings of what one turn, and all of them together, may take. Enforced in `limits.rs`.

use serde_json::{Value, json};

use super::{Setting, choice, integer};

const LIMITS: &str = "Limits";

pub static ROWS: &[Setting] = &[
    Setting {
        key: "limits",
        section: LIMITS,
        label: "Limits in force",
        help: "Bounded: prompts of 2,048 tokens and 10,000 characters, answers of 512 tokens and 30 seconds, 32 at once; for programs that strangers may ask.",
        kind: || choice(&[("own", "Those below"), ("bounded", "Bounded")]),
        default: || json!("own"),
    },
    Setting {
        key: "limit_prompt_tokens",
        section: LIMITS,
        label: "Longest prompt",
        help: "In tokens, the whole conversation with it.",
        kind: || integer(1, 1_048_576, Some("what the context holds")),
        default: || Value::Null,
    },
    Setting {
        key: "limit_characters",
        section: LIMITS,
        label: "Longest message",
        help: "In characters.",
        kind: || integer(1, 16 << 20, Some("any that can be kept")),
        default: || Value::Null,
    },
    Setting {
        key: "limit_answer_tokens",
        section: LIMITS,
        label: "Longest answer that can be asked for",
        help: "In tokens; a program that asks for more gets so many.",
        kind: || integer(1, 1_048_576, Some("until the context is full")),
        default: || Value::Null,
    },
    Setting {
        key: "limit_seconds",
        section: LIMITS,
        label: "Longest time for an answer",
        help: "In seconds, waiting included; what was written until then stays.",
        kind: || integer(1, 86_400, Some("as long as it takes")),
        default: || Value::Null,
    },
    Setting {
        key: "limit_concurrent",
        section: LIMITS,
        label: "Answers at once",
        help: "More wait for their turn.",
        kind: || integer(1, 32, None),
        default: || json!(32),
    },
    Setting {
        key: "limit_waiting",
        section: LIMITS,
        label: "Answers that may wait",
        help: "Beyond them, a question is refused at once.",
        kind: || integer(0, 1024, None),
        default: || json!(256),
    },
    Setting {
        key: "context_memory",
        section: LIMITS,
        label: "Memory for contexts",
        help: "In megabytes, of all conversations that a model holds at once; one whole context always has room.",
        kind: || integer(1, 1 << 24, Some("a part of what is free")),
        default: || Value::Null,
    },
];
