//! Turns: their events, and the figures of a finished answer.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{CompactionInfo, ErrorInfo, GuideReply, OneOffOptions, TokenAlternatives, ToolCall};

/// A turn that has begun, with the ids of its messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct TurnStarted {
    pub turn: String,
    pub conversation: String,
    pub user_message: String,
    pub assistant_message: String,
}

/// One step of a turn. Sequence numbers start at 1 and have no gaps; any watcher can replay them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct TurnEvent {
    #[ts(type = "number")]
    pub seq: u64,
    pub turn: String,
    pub kind: TurnEventKind,
}

/// The content of a turn event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TurnEventKind {
    Queued {
        position: u32,
    },
    /// `fraction` from 0 to 1.
    Loading {
        fraction: f32,
    },
    Prefill {
        done: u32,
        total: u32,
    },
    /// Older messages that are being summarised because they no longer fit.
    Compacting {
        messages: u32,
    },
    /// The prompt no longer contains them.
    Compacted {
        compaction: CompactionInfo,
    },
    /// Probabilities of the tokens of the text that follows, where the request wants them.
    Logprobs {
        tokens: Vec<TokenAlternatives>,
    },
    Text {
        text: String,
        ids: Vec<u32>,
    },
    Reasoning {
        text: String,
        ids: Vec<u32>,
    },
    /// Replaces all text and reasoning so far: a server's reasoning ended without having begun.
    Revised {
        text: String,
        reasoning: String,
    },
    ToolCall {
        call: ToolCall,
    },
    /// Something the user should know though nothing failed.
    Notice {
        error: ErrorInfo,
    },
    Done {
        stats: TurnStats,
    },
    Failed {
        error: ErrorInfo,
    },
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    Stop,
    /// The model waits for tool results.
    ToolCalls,
    Length,
    Cancelled,
    ContextFull,
    /// The time limit was reached.
    TimeUp,
}

/// The figures of an answer: tokens, times and rates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct TurnStats {
    pub finish: Finish,
    pub prompt_tokens: u32,
    /// Prompt tokens that were in the KV cache already.
    pub reused_tokens: u32,
    pub generated_tokens: u32,
    /// Tokens drafted and verified.
    #[serde(default)]
    pub drafted_tokens: u32,
    /// Drafted tokens that were accepted.
    #[serde(default)]
    pub accepted_tokens: u32,
    pub context_tokens: u32,
    pub context_limit: u32,
    pub load_ms: f64,
    pub ttft_ms: f64,
    pub prefill_tok_s: f64,
    pub decode_tok_s: f64,
    /// From the first reasoning token to the last; 0 if there is none.
    #[serde(default)]
    #[ts(optional, as = "Option<f64>")]
    pub thought_ms: f64,
    /// Tokens of the images that the vision tower saw for this answer. Those that it remembered are not among them.
    #[serde(default)]
    #[ts(optional, as = "Option<u32>")]
    pub image_tokens: u32,
    /// How long the tower took, before the prompt was read.
    #[serde(default)]
    #[ts(optional, as = "Option<f64>")]
    pub image_ms: f64,
    /// The token counts are estimates.
    #[serde(default)]
    #[ts(optional, as = "Option<bool>")]
    pub is_about: bool,
    /// The remote host that answered, if any.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub answered_by: Option<String>,
    /// The stop text of the request that ended it: its place in the list.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub stop_index: Option<u32>,
    /// Its one-off options.
    #[serde(default)]
    #[ts(optional = nullable)]
    pub once: Option<OneOffOptions>,
    /// What the user guide answered with, where it answered instead of a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub guide: Option<GuideReply>,
}
