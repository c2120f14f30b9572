//! What the answers of this process came to since it began: for `/metrics` and `nook stats`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contract::Result;
use contract::types::{ModelState, TurnEventKind, TurnStats};
use io::Clock;
use platform::memory;
use serde::{Deserialize, Serialize};

use super::latency_histogram::LatencyHistogram;
use crate::App;

/// Sums over all answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AnswerTotals {
    /// Answers that have ended, by how they did: `stop`, `length`, `failed` and so on.
    pub ended: BTreeMap<String, u64>,
    pub prompt_tokens: u64,
    /// Prompt tokens that were in the KV cache already.
    pub cached_tokens: u64,
    pub generated_tokens: u64,
    /// Tokens drafted and verified.
    pub drafted_tokens: u64,
    /// Drafted tokens that were accepted.
    pub accepted_tokens: u64,
    /// Time spent on reading prompts, in seconds.
    pub prefill_s: f64,
    /// Time spent on generating, in seconds.
    pub decode_s: f64,
    pub time_to_first_token: LatencyHistogram,
}

impl AnswerTotals {
    fn add(&mut self, outcome: &str, stats: Option<&TurnStats>) {
        *self.ended.entry(outcome.to_owned()).or_default() += 1;
        let Some(stats) = stats else { return };
        let n_read = stats.prompt_tokens.saturating_sub(stats.reused_tokens);
        self.prompt_tokens += u64::from(stats.prompt_tokens);
        self.cached_tokens += u64::from(stats.reused_tokens);
        self.generated_tokens += u64::from(stats.generated_tokens);
        self.drafted_tokens += u64::from(stats.drafted_tokens);
        self.accepted_tokens += u64::from(stats.accepted_tokens);
        self.prefill_s += time_s(n_read, stats.prefill_tok_s);
        self.decode_s += time_s(stats.generated_tokens, stats.decode_tok_s);
        if stats.generated_tokens > 0 {
            self.time_to_first_token.observe(stats.ttft_ms / 1e3);
        }
    }
}

/// The time that `n` tokens took at a rate; 0 where the rate is unknown.
fn time_s(n: u32, tok_s: f64) -> f64 {
    if tok_s > 0.0 { f64::from(n) / tok_s } else { 0.0 }
}

/// Counts the answers of this process.
pub(crate) struct TurnMetrics {
    clock: Arc<dyn Clock>,
    began: Duration,
    totals: Mutex<AnswerTotals>,
}

impl TurnMetrics {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { began: clock.monotonic(), clock, totals: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, AnswerTotals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an answer that ended as `outcome`, with its last event.
    pub fn count(&self, outcome: &str, last: &TurnEventKind) {
        let stats = match last {
            TurnEventKind::Done { stats } => Some(stats),
            _ => None,
        };
        self.lock().add(outcome, stats);
    }
}

/// This process and what it answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuntimeStats {
    pub uptime_s: f64,
    pub totals: AnswerTotals,
    /// Answers that are being written.
    pub running: usize,
    /// Answers that wait for their turn.
    pub queued: usize,
    /// Answers that may be written at once.
    pub answers_at_once: usize,
    /// Models in memory.
    pub loaded_models: Vec<String>,
    /// Memory of this process and its worker, pages of mapped files among them. `None`: the system doesn't say.
    pub memory_bytes: Option<u64>,
}

impl App {
    /// What this process has answered, and what it is doing now.
    pub fn runtime_stats(&self) -> Result<RuntimeStats> {
        let services = self.services();
        let open = services.turns.open_turns();
        let is_queued = |event: Option<contract::types::TurnEvent>| {
            event.is_none_or(|event| matches!(event.kind, TurnEventKind::Queued { .. }))
        };
        let queued = open.iter().filter(|turn| is_queued(turn.feed.last())).count();
        let models = self.models_list()?.into_iter().filter(|it| matches!(it.state, ModelState::Ready));
        let metrics = &services.turn_metrics;
        Ok(RuntimeStats {
            uptime_s: metrics.clock.monotonic().saturating_sub(metrics.began).as_secs_f64(),
            totals: metrics.lock().clone(),
            running: open.len() - queued,
            queued,
            answers_at_once: self.answers_at_once()?,
            loaded_models: models.map(|entry| entry.id).collect(),
            memory_bytes: memory::program_bytes(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(prompt: u32, reused: u32, generated: u32) -> TurnStats {
        let value = serde_json::json!({
            "finish": "stop", "prompt_tokens": prompt, "reused_tokens": reused, "generated_tokens": generated,
            "context_tokens": 5, "context_limit": 64, "load_ms": 0.0, "ttft_ms": 30.0, "prefill_tok_s": 4.0,
            "decode_tok_s": 2.0,
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn answers_add_up() {
        let mut totals = AnswerTotals::default();
        totals.add("stop", Some(&stats(10, 2, 4)));
        totals.add("stop", Some(&stats(6, 6, 0)));
        totals.add("failed", None);
        assert_eq!((totals.ended["stop"], totals.ended["failed"]), (2, 1));
        assert_eq!((totals.prompt_tokens, totals.cached_tokens, totals.generated_tokens), (16, 8, 4));
        assert_eq!((totals.prefill_s, totals.decode_s), (2.0, 2.0));
        assert_eq!(totals.time_to_first_token.count(), 1, "an answer without a token has no first one");
    }
}
