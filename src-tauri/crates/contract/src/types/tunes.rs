//! Fine-tuning: what a run is asked for, what it reports, and what it makes.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::ErrorInfo;

/// What is learned from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "from", rename_all = "snake_case", deny_unknown_fields)]
pub enum TuneData {
    /// A file on this computer: JSONL, CSV or plain text.
    Path { path: String },
    /// The contents of a file. Its name's ending says what they are.
    Text { name: String, text: String },
    /// Conversations, each as it is shown: with the answers that the user kept or edited. An empty list: all that are
    /// not in the trash.
    Chats { ids: Vec<String> },
}

/// A run that is asked for. What is absent is as usual.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct TuneArgs {
    /// A library id. Only models on this computer can be trained.
    pub model: String,
    /// Letters, digits, `.`, `_` and `-`. The result is called `MODEL+NAME`.
    pub name: String,
    pub data: TuneData,
    /// Rank of the adapter's matrices.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub rank: Option<u32>,
    /// Strength of the adapter: its update is divided by the rank and multiplied by this.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub alpha: Option<f64>,
    /// Learning rate after the warm-up.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub lr: Option<f64>,
    /// How often each example is learned.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub epochs: Option<u32>,
    /// Longest example in tokens.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub max_tokens: Option<u32>,
    /// Examples of one step.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub step_examples: Option<u32>,
    /// Determines the first values, the held-out examples and the order.
    #[serde(default)]
    #[ts(optional = nullable, type = "number | null")]
    pub seed: Option<u64>,
}

/// A stretch of an example.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct TunePiece {
    pub text: String,
    /// The model learns to write it; else it only reads it.
    pub is_learned: bool,
}

/// An example as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct TuneExample {
    /// Line of the data where it starts, from 1.
    pub line: u32,
    pub pieces: Vec<TunePiece>,
}

/// An item that is not learned from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct TuneSkipped {
    /// Line of the data where it starts, from 1.
    pub line: u32,
    /// Why, as a clause.
    pub reason: String,
}

/// Why answers of chats are not learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum TuneLeftOutReason {
    /// Another version was chosen.
    Replaced,
    /// Stopped, failed, or cut off at a limit.
    Unfinished,
    /// They are calls of tools, or came after their results.
    Tools,
    /// The chat had files by then.
    Files,
    /// The user guide wrote them.
    Guide,
}

/// Answers of chats that are not learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct TuneLeftOut {
    pub reason: TuneLeftOutReason,
    pub count: u32,
}

/// What is learned from chats: answers that the user kept or edited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct TuneChats {
    /// Chats with such answers.
    pub chats: u32,
    /// Answers that are learned.
    pub answers: u32,
    /// Those that are not, by reason.
    pub left_out: Vec<TuneLeftOut>,
}

/// What a run would learn, and what it would take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct TunePreview {
    /// Examples to learn from.
    pub examples: u32,
    /// Examples that are only measured.
    pub held_out: u32,
    /// Tokens of the examples to learn from.
    #[ts(type = "number")]
    pub tokens: u64,
    /// Those of them that the model learns to write.
    #[ts(type = "number")]
    pub learned_tokens: u64,
    /// Longest example in tokens that is allowed.
    pub max_tokens: u32,
    /// Steps of the whole run.
    #[ts(type = "number")]
    pub steps: u64,
    /// Estimate for the whole run, from a step that was measured on this computer.
    pub seconds: f64,
    /// Name of the GPU that computes the products. None: the CPU computes all.
    pub gpu: Option<String>,
    /// Estimate of the memory that the run needs at most.
    #[ts(type = "number")]
    pub memory_bytes: u64,
    #[ts(type = "number | null")]
    pub free_bytes: Option<u64>,
    /// The first examples.
    pub first: Vec<TuneExample>,
    /// Where the examples are chats.
    pub chats: Option<TuneChats>,
    pub n_skipped: u32,
    /// The first of the items that are left out.
    pub skipped: Vec<TuneSkipped>,
}

/// One step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
pub struct TuneStep {
    /// From 1.
    #[ts(type = "number")]
    pub step: u64,
    /// Mean loss of the step's examples, before it.
    pub loss: f64,
    /// Mean loss of the held-out examples after it, where it was measured.
    pub held_out: Option<f64>,
    /// Tokens learned from per second.
    pub tok_s: f64,
    /// How long the step took.
    pub seconds: f64,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct TuneReport {
    /// Loss of the held-out examples before the run. Absent: there are none.
    pub before: Option<f64>,
    /// The same after the run.
    pub after: Option<f64>,
    /// Steps done.
    #[ts(type = "number")]
    pub steps: u64,
    /// The held-out loss rose, so the run ended before its last step.
    pub stopped_early: bool,
    /// The held-out loss is higher than before the run.
    pub worse_than_before: bool,
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum TuneState {
    Running,
    /// It continues where it was.
    Paused,
    Done {
        report: TuneReport,
    },
    /// It may be tried again.
    Failed {
        error: ErrorInfo,
    },
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct TuneInfo {
    /// Its name.
    pub id: String,
    /// Library id of the model that learns.
    pub model: String,
    /// Name of the data. Empty: it was made of chats.
    pub data: String,
    /// Number of chats that the data was made of.
    pub chats: Option<u32>,
    pub state: TuneState,
    /// Steps of the whole run. Absent: it has not begun.
    #[ts(type = "number | null")]
    pub n_steps: Option<u64>,
    /// The last step that was done.
    pub last: Option<TuneStep>,
    /// Held-out loss before the run.
    pub before: Option<f64>,
    /// Seconds that a running one still takes, by the mean of its steps.
    pub seconds_left: Option<f64>,
    #[ts(type = "number")]
    pub created_ms: i64,
    /// Folder with the adapter.
    pub folder: String,
    /// The id under which the result answers, once it is done.
    pub tuned: Option<String>,
}

/// A held-out prompt with the answers of both models, each always with the most likely token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct TuneAnswers {
    /// Line of the data where the example starts, from 1.
    pub line: u32,
    /// The last question, or the beginning of a text.
    pub prompt: String,
    /// What the data continues with.
    pub expected: String,
    /// Answer of the model as it was, cut off if it is long.
    pub base: String,
    /// Answer of the tuned model, cut off if it is long.
    pub tuned: String,
}

/// A run with all its steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct TuneDetails {
    pub info: TuneInfo,
    pub steps: Vec<TuneStep>,
    /// Up to five held-out prompts, answered by both models. Empty until the run is complete.
    pub answers: Vec<TuneAnswers>,
}
