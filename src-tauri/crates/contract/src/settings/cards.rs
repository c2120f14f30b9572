//! The settings of graphics cards.

use serde_json::{Value, json};

use super::{Setting, choice, integer};
use crate::types::SettingKind;

const CARDS: &str = "Graphics cards";

pub static ROWS: &[Setting] = &[
    Setting {
        key: "backend",
        section: CARDS,
        label: "Compute on",
        help: "By itself a graphics card computes where it is measured to be faster than the processor. Its kernels are checked when it is first used with a driver; where it fails, the processor goes on.",
        kind: || {
            choice(&[("auto", "Whatever is faster"), ("cpu", "The processor"), ("gpu", "A graphics card")])
        },
        default: || json!("auto"),
    },
    Setting {
        key: "gpu_layers",
        section: CARDS,
        label: "GPU layers",
        help: "How many layers of a model graphics cards compute; the others stay with the processor. What a model would take is shown with its details.",
        kind: || integer(0, 1000, Some("as many as fit")),
        default: || Value::Null,
    },
    Setting {
        key: "gpu_memory",
        section: CARDS,
        label: "Memory of graphics cards",
        help: "In megabytes: what a model may take of each.",
        kind: || integer(64, 1 << 24, Some("most of what it has")),
        default: || Value::Null,
    },
    Setting {
        key: "gpu_precision",
        section: CARDS,
        label: "Precision of graphics cards",
        help: "Floats are the most exact. Halves may read prompts faster, with far less error than the processor's integers; tensor cores faster still, but then an answer depends a little on what is read beside it. What a card lacks or does wrongly it does without.",
        kind: || {
            choice(&[
                ("auto", "Floats"),
                ("f32", "Always floats"),
                ("f16", "Halves"),
                ("matrices", "Halves by tensor cores (experimental)"),
            ])
        },
        default: || json!("auto"),
    },
    Setting {
        key: "gpu_devices",
        section: CARDS,
        label: "Which graphics cards",
        help: "Numbers or parts of names, as `nook devices` lists them, with a comma between two.",
        kind: || SettingKind::Text { placeholder: "the best there is".into() },
        default: || json!(""),
    },
    Setting {
        key: "gpu_spread",
        section: CARDS,
        label: "Several graphics cards",
        help: "Where each has the whole model, chats are spread over them: those that are answered at the same time come sooner, and where one fails the others go on. Shared layers let larger models fit.",
        kind: || {
            choice(&[
                ("auto", "Whole models where they fit"),
                ("layers", "Share a model's layers"),
                ("copies", "The whole model on each"),
            ])
        },
        default: || json!("auto"),
    },
];
