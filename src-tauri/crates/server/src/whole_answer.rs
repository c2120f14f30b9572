//! Collects the events of a turn to an answer that is sent in one piece.

use contract::types::{TokenAlternatives, ToolCall, TurnEventKind, TurnStats};
use contract::{Error, Result};

/// A whole answer, and what was said about it.
#[derive(Debug)]
pub struct WholeAnswer {
    pub text: String,
    pub thinking: String,
    pub calls: Vec<ToolCall>,
    /// Probabilities of the tokens, where they were asked for.
    pub logprobs: Vec<TokenAlternatives>,
    pub stats: TurnStats,
}

/// An answer that grows with the events of its turn.
#[derive(Debug, Default)]
pub struct AnswerBuilder {
    text: String,
    thinking: String,
    calls: Vec<ToolCall>,
    logprobs: Vec<TokenAlternatives>,
    stats: Option<TurnStats>,
}

impl AnswerBuilder {
    /// Takes the next event. Error: the turn failed.
    pub fn take(&mut self, kind: TurnEventKind) -> Result<()> {
        match kind {
            TurnEventKind::Text { text, .. } => self.text.push_str(&text),
            TurnEventKind::Reasoning { text, .. } => self.thinking.push_str(&text),
            TurnEventKind::Revised { text, reasoning } => (self.text, self.thinking) = (text, reasoning),
            TurnEventKind::ToolCall { call } => self.calls.push(call),
            TurnEventKind::Logprobs { tokens } => self.logprobs.extend(tokens),
            TurnEventKind::Done { stats } => self.stats = Some(stats),
            TurnEventKind::Failed { error } => return Err(error.into()),
            TurnEventKind::Queued { .. }
            | TurnEventKind::Loading { .. }
            | TurnEventKind::Prefill { .. }
            | TurnEventKind::Compacting { .. }
            | TurnEventKind::Compacted { .. }
            | TurnEventKind::Notice { .. } => {}
        }
        Ok(())
    }

    /// The answer. Error: its last event is missing.
    pub fn build(self) -> Result<WholeAnswer> {
        let Self { text, thinking, calls, logprobs, stats } = self;
        let stats = stats.ok_or_else(|| Error::bug("an answer ended without an end"))?;
        Ok(WholeAnswer { text, thinking, calls, logprobs, stats })
    }
}
