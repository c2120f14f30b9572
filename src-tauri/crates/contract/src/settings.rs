//! The settings table: one row each. Storage, UI controls, terminal and REST are derived from the
//! row. A stored value always lies in its row's range. Knows nothing of where values are stored.

mod contexts;
mod downloads;
mod gpus;
mod library;
mod limits;
mod network;
mod sections;
mod server;
mod tools;
mod values;
mod window;

use serde_json::{Value, json};

pub use server::DEFAULT_SERVER_PORT;

use crate::types::{ChoiceOption, SettingKind, SettingRow};
use crate::{Error, Result};

/// One setting. `kind` and `default` are functions because some depend on the machine.
pub struct Setting {
    /// Stable key in the database, flags and REST.
    pub key: &'static str,
    /// Its group of rows; `sections.rs` assigns groups to sections.
    pub section: &'static str,
    /// Label in the interface.
    pub label: &'static str,
    /// Help text in the interface.
    pub help: &'static str,
    /// Type and range.
    pub kind: fn() -> SettingKind,
    /// Default value.
    pub default: fn() -> Value,
}

/// Tokens of context a model gets unless the user asks for more: a KV cache of 8,192 tokens fits
/// small machines.
pub const DEFAULT_CONTEXT: u32 = 8192;

const GENERAL: &str = "General";
const SAMPLING: &str = "Answers";
const GUARDING: &str = "Safety";
const LONG: &str = "Long chats";
const MODELS: &str = "Models";
const MACHINE: &str = "Hardware";
const THINKING: &str = "Thinking";
const DATA: &str = "Data";

fn choice(options: &[(&str, &str)]) -> SettingKind {
    let options = options.iter().map(|(v, l)| ChoiceOption { value: (*v).into(), label: (*l).into() });
    SettingKind::Choice { options: options.collect() }
}

fn integer(min: i64, max: i64, absent: Option<&str>) -> SettingKind {
    SettingKind::Integer { min, max, absent: absent.map(Into::into) }
}

fn number(min: f64, max: f64, step: f64) -> SettingKind {
    SettingKind::Number { min, max, step }
}

static SETTINGS: &[Setting] = &[
    Setting {
        key: "model",
        section: GENERAL,
        label: "Default model",
        help: "Used for new chats.",
        // The options are the library's entries, filled in by `App::settings_list`.
        kind: || choice(&[]),
        default: || json!(crate::STARTER_ID),
    },
    Setting {
        key: "instructions",
        section: SAMPLING,
        label: "Default instructions",
        help: "System prompt of new chats. A chat or preset that has instructions uses those instead.",
        kind: || SettingKind::LongText { placeholder: "For example: Answer briefly.".into() },
        default: || json!(""),
    },
    Setting {
        key: "memory",
        section: SAMPLING,
        label: "Use memory",
        help: "Adds the notes of the memory page to the prompt of every chat. Each chat and each project can override this. Nothing is noted unless you save it.",
        kind: || SettingKind::Toggle,
        default: || json!(true),
    },
    Setting {
        key: "temperature",
        section: SAMPLING,
        label: "Temperature",
        help: "0 always picks the most likely token. Higher values give more varied answers.",
        kind: || number(0.0, 2.0, 0.05),
        default: || json!(0.7),
    },
    Setting {
        key: "top_k",
        section: SAMPLING,
        label: "Top-k",
        help: "Samples only from the k most likely tokens. 0 turns this off.",
        kind: || integer(0, 1000, None),
        default: || json!(40),
    },
    Setting {
        key: "top_p",
        section: SAMPLING,
        label: "Top-p",
        help: "Samples only from the most likely tokens whose probabilities add up to this value. 1 turns this off.",
        kind: || number(0.0, 1.0, 0.01),
        default: || json!(0.95),
    },
    Setting {
        key: "min_p",
        section: SAMPLING,
        label: "Min-p",
        help: "Drops tokens whose probability is below this share of the most likely token's. 0 turns this off.",
        kind: || number(0.0, 1.0, 0.01),
        default: || json!(0.05),
    },
    Setting {
        key: "repeat_penalty",
        section: SAMPLING,
        label: "Repetition penalty",
        help: "Makes recently used tokens less likely. 1 turns this off.",
        kind: || number(0.5, 2.0, 0.01),
        default: || json!(1.0),
    },
    Setting {
        key: "seed",
        section: SAMPLING,
        label: "Seed",
        help: "The same seed and prompt give the same answer.",
        kind: || integer(0, (1 << 53) - 1, Some("random")),
        default: || Value::Null,
    },
    Setting {
        key: "max_tokens",
        section: SAMPLING,
        label: "Maximum answer length",
        help: "In tokens.",
        kind: || integer(1, 1_048_576, Some("until the context is full")),
        default: || Value::Null,
    },
    Setting {
        key: "titles",
        section: GENERAL,
        label: "Generate chat titles",
        help: "The model names a chat after its first answer, when it is idle. Titles you enter stay unchanged.",
        kind: || SettingKind::Toggle,
        default: || json!(true),
    },
    Setting {
        key: "guide_answers",
        section: GENERAL,
        label: "Built-in model answers from the user guide",
        help: "Its answers are articles of the guide. Turn this off to have the model itself write them.",
        kind: || SettingKind::Toggle,
        default: || json!(true),
    },
    Setting {
        key: "thinking",
        section: THINKING,
        label: "Think before answering",
        help: "For models that can turn thinking on and off. Some also accept /think or /no_think in a message.",
        kind: || choice(&[("model", "Model default"), ("on", "On"), ("off", "Off")]),
        default: || json!("model"),
    },
    Setting {
        key: "reasoning_effort",
        section: THINKING,
        label: "Reasoning effort",
        help: "How long models with effort levels think, such as gpt-oss.",
        kind: || {
            choice(&[("model", "Model default"), ("low", "Low"), ("medium", "Medium"), ("high", "High")])
        },
        default: || json!("model"),
    },
    Setting {
        key: "reasoning_budget",
        section: THINKING,
        label: "Maximum thinking length",
        help: "In tokens. Then the model has to answer.",
        kind: || integer(0, 1_048_576, Some("model default")),
        default: || Value::Null,
    },
    Setting {
        key: "template_fallback",
        section: MODELS,
        label: "Replace broken chat templates",
        help: "If a model's own chat template can't be used, uses the template of its family and shows a notice.",
        kind: || SettingKind::Toggle,
        default: || json!(false),
    },
    Setting {
        key: "chat_templates",
        section: MODELS,
        label: "Custom chat templates",
        help: "Files that replace the templates built into models, as model=file. Separate entries with semicolons.",
        kind: || SettingKind::Text { placeholder: "model=/path/to/template.jinja".into() },
        default: || json!(""),
    },
    Setting {
        key: "speculation",
        section: MACHINE,
        label: "Speculative decoding",
        help: "Checks several predicted tokens at once. Answers stay the same but come faster. Pauses when it doesn't help.",
        kind: || {
            choice(&[
                ("lookup", "Predict from the chat"),
                ("draft", "Predict with a draft model"),
                ("off", "Off"),
            ])
        },
        default: || json!("lookup"),
    },
    Setting {
        key: "draft_model",
        section: MACHINE,
        label: "Draft model",
        help: "A smaller model that predicts tokens. It needs the same vocabulary as the main model, and additional memory.",
        // The options are no model and the library's entries, filled in by `App::settings_list`.
        kind: || choice(&[]),
        default: || json!(""),
    },
    Setting {
        key: "threads",
        section: MACHINE,
        label: "CPU threads",
        help: "Number of threads used for computation.",
        kind: || integer(1, 512, Some("one per fast core; half on battery")),
        default: || Value::Null,
    },
    Setting {
        key: "affinity",
        section: MACHINE,
        label: "CPU affinity",
        help: "Pins threads to CPU cores. Faster on some computers, slower when other programs are busy.",
        kind: || SettingKind::Toggle,
        default: || json!(false),
    },
    Setting {
        key: "numa",
        section: MACHINE,
        label: "NUMA",
        help: "Placement of threads and memory on computers with several CPU sockets. No effect on other computers.",
        kind: || {
            choice(&[("off", "System default"), ("node", "One NUMA node"), ("spread", "All NUMA nodes")])
        },
        default: || json!("off"),
    },
    Setting {
        key: "context",
        section: MACHINE,
        label: "Context length",
        help: "Maximum number of tokens in a chat that the model can see. Longer contexts use more memory.",
        kind: || integer(64, 1_048_576, Some("model's own, up to 8192")),
        default: || Value::Null,
    },
    Setting {
        key: "compression",
        section: LONG,
        label: "When the context is full",
        help: "What the model sees when a chat no longer fits into the context. Your messages are never deleted.",
        kind: || {
            choice(&[
                ("window", "Leave out the oldest messages"),
                ("summary", "Summarize older messages"),
                ("attention", "Forget the least relevant tokens (approximate)"),
                ("off", "Stop with an error"),
            ])
        },
        default: || json!("window"),
    },
    Setting {
        key: "refusal_patterns",
        section: GUARDING,
        label: "Blocked patterns",
        help: "Messages that match one of these regular expressions are not sent to models. Separate expressions with ;;.",
        kind: || SettingKind::Text { placeholder: "none".into() },
        default: || json!(""),
    },
    Setting {
        key: "kv",
        section: MACHINE,
        label: "KV cache precision",
        help: "8-bit answers as well as 16-bit. 4-bit raised the perplexity of two small models by 6 and 12 %; 8-bit keys with 4-bit values by 1.6 and 0.3 %.",
        kind: || {
            choice(&[
                ("f16", "16-bit float"),
                ("f32", "32-bit float"),
                ("q8_0", "8-bit (half the memory)"),
                ("q8_0/q4_0", "8-bit keys, 4-bit values (two fifths of the memory)"),
                ("q4_0", "4-bit (a quarter of the memory, less exact)"),
            ])
        },
        default: || json!("f16"),
    },
    Setting {
        key: "kv_window",
        section: MACHINE,
        label: "Sliding window",
        help: "Limits attention to this many recent tokens in layers with rotary positions (RoPE). Saves memory, but answers get worse because the model wasn't trained this way.",
        kind: || integer(64, 1_048_576, Some("model default")),
        default: || Value::Null,
    },
    Setting {
        key: "context_stretch",
        section: MACHINE,
        label: "RoPE scaling",
        help: "Multiplies the model's maximum context (YaRN). 1 turns this off. Higher values lower the quality of answers.",
        kind: || number(1.0, 64.0, 0.5),
        default: || json!(1.0),
    },
    Setting {
        key: "resident_budget",
        section: MACHINE,
        label: "Memory for weights (MB)",
        help: "The rest of the weights is read from disk when needed, which is slower.",
        kind: || integer(64, 1 << 24, Some("as much as fits")),
        default: || Value::Null,
    },
    Setting {
        key: "large_pages",
        section: MACHINE,
        label: "Huge pages",
        help: "Reads models in 2 MB pages where the system supports it, so the next start is faster.",
        kind: || SettingKind::Toggle,
        default: || json!(true),
    },
    Setting {
        key: "log_level",
        section: DATA,
        label: "Log level",
        help: "How much is written to the log folder. Prompts and answers are never logged.",
        kind: || {
            choice(&[("error", "Errors"), ("warn", "Warnings"), ("info", "Normal"), ("debug", "Detailed")])
        },
        default: || json!("info"),
    },
    Setting {
        key: "data_dir",
        section: DATA,
        label: "Data folder",
        help: "Set by --data-dir or INGLENOOK_DATA_DIR when the program starts.",
        kind: || SettingKind::ReadOnly,
        default: || Value::Null,
    },
];

/// All settings, in display order.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().chain(sections::rows())
}

/// Finds a setting by its key. Errors name the known keys.
pub fn find(key: &str) -> Result<&'static Setting> {
    all().find(|setting| setting.key == key).ok_or_else(|| {
        let keys: Vec<_> = all().map(|setting| setting.key).collect();
        Error::not_found(
            "setting.unknown",
            format!("There is no setting \"{key}\"."),
            format!("Available settings: {}.", keys.join(", ")),
        )
    })
}

/// Takes effect when a model is loaded.
pub fn at_load(key: &str) -> bool {
    sections::AT_LOAD.contains(&key)
}

/// Parses `id=path; id=path` into pairs.
pub fn pairs(text: &str) -> Result<Vec<(&str, &str)>> {
    let parts = text.split([';', '\n']).map(str::trim).filter(|part| !part.is_empty());
    let pair = |part: &str| -> Option<(usize, usize)> {
        let at = part.find('=')?;
        (at > 0 && at + 1 < part.len()).then_some((at, at + 1))
    };
    let parts = parts.map(|part| {
        let (end, start) = pair(part).ok_or_else(|| {
            Error::input(
                "setting.out_of_range",
                format!("\"{part}\" is not in the form model=file."),
                "Write model=file, such as qwen3-4b=/home/me/qwen.jinja.",
            )
        })?;
        Ok((part[..end].trim(), part[start..].trim()))
    });
    parts.collect()
}

impl Setting {
    /// The row as edges show it, with its current value.
    pub fn row(&self, value: Value) -> SettingRow {
        SettingRow {
            key: self.key.into(),
            section: sections::of(self.section).into(),
            group: self.section.into(),
            at_load: at_load(self.key),
            label: self.label.into(),
            help: self.help.into(),
            kind: (self.kind)(),
            default: (self.default)(),
            value,
        }
    }
}
