//! The GPU settings.

use serde_json::{Value, json};

use super::{Setting, choice, integer};
use crate::types::SettingKind;

const CARDS: &str = "GPUs";

/// The rows of this section.
pub static ROWS: &[Setting] = &[
    Setting {
        key: "backend",
        section: CARDS,
        label: "Compute on",
        help: "Automatic uses a GPU where it is measured to be faster than the CPU. GPU kernels are checked the first time they run with a driver; if a GPU fails, the CPU takes over.",
        kind: || choice(&[("auto", "Automatic"), ("cpu", "CPU"), ("gpu", "GPU")]),
        default: || json!("auto"),
    },
    Setting {
        key: "gpu_layers",
        section: CARDS,
        label: "GPU layers",
        help: "Number of a model's layers that GPUs compute. The CPU computes the rest. See a model's details for the memory this takes.",
        kind: || integer(0, 1000, Some("as many as fit")),
        default: || Value::Null,
    },
    Setting {
        key: "gpu_memory",
        section: CARDS,
        label: "GPU memory limit (MB)",
        help: "Memory that a model may use on each GPU.",
        kind: || integer(64, 1 << 24, Some("most of it")),
        default: || Value::Null,
    },
    Setting {
        key: "gpu_precision",
        section: CARDS,
        label: "GPU precision",
        help: "Precision of GPU matrix multiplications. Automatic reads prompts in 16-bit on tensor cores where a GPU has them, which is several times faster, and computes answers in 32-bit. They then depend slightly on whether other answers ran during the prompt. 16-bit rounds both, still with far less error than the CPU's integers. Modes that a GPU lacks or computes incorrectly are skipped.",
        kind: || {
            choice(&[
                ("auto", "Automatic"),
                ("f32", "32-bit"),
                ("f16", "16-bit"),
                ("matrices", "Prompts in 16-bit on tensor cores"),
            ])
        },
        default: || json!("auto"),
    },
    Setting {
        key: "gpu_devices",
        section: CARDS,
        label: "GPUs to use",
        help: "Numbers or parts of names as listed by `nook devices`, separated by commas.",
        kind: || SettingKind::Text { placeholder: "best available".into() },
        default: || json!(""),
    },
    Setting {
        key: "gpu_spread",
        section: CARDS,
        label: "Multiple GPUs",
        help: "With the whole model on each GPU, chats are spread over them: simultaneous answers come sooner, and the others continue if one GPU fails. Splitting layers lets larger models fit.",
        kind: || {
            choice(&[
                ("auto", "Whole model on each, if it fits"),
                ("layers", "Split layers across GPUs"),
                ("copies", "Always the whole model on each"),
            ])
        },
        default: || json!("auto"),
    },
];
