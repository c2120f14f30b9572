//! Converts a turn's events to llama.cpp's format of completions.

use contract::types::{ErrorInfo, Finish, TokenAlternatives, TokenShare, TurnEventKind, TurnStats};
use contract::{Error, Result, Sampling};
use serde_json::{Map, Value, json};

use super::fault::LlamaCppFault;
use super::request::LlamaCppFormat;
use crate::running_turn::StreamFormat;

/// Stands for a random seed in llama.cpp's settings.
const RANDOM_SEED: u64 = 4_294_967_295;

/// What is known of a completion before its text.
#[derive(Debug, Clone)]
pub struct CompletionHead {
    pub model: String,
    /// Place of its prompt in the request.
    pub index: usize,
    /// Text of the prompt, with control tokens written out.
    pub prompt: String,
    pub stop: Vec<String>,
    pub settings: Value,
    pub format: LlamaCppFormat,
}

/// The settings that an answer was generated with.
pub fn settings(sampling: &Sampling, max_tokens: Option<usize>, stop: &[String], n_probs: usize) -> Value {
    let n_predict = max_tokens.map_or(json!(-1), |n| json!(n));
    json!({
        "seed": sampling.seed.unwrap_or(RANDOM_SEED), "temperature": sampling.temperature, "top_k": sampling.top_k,
        "top_p": sampling.top_p, "min_p": sampling.min_p, "repeat_penalty": sampling.repeat_penalty,
        "repeat_last_n": sampling.repeat_last_n, "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty, "n_predict": n_predict, "max_tokens": n_predict,
        "stop": stop, "n_probs": n_probs, "n_keep": 0,
        "dry_multiplier": sampling.dry.multiplier, "dry_base": sampling.dry.base,
        "dry_allowed_length": sampling.dry.allowed_length,
        "dry_penalty_last_n": sampling.dry.last_n.map_or(json!(-1), |n| json!(n)),
        "dry_sequence_breakers": sampling.dry.sequence_breakers,
        "xtc_probability": sampling.xtc.probability, "xtc_threshold": sampling.xtc.threshold,
        // Samplers that are always off here.
        "adaptive_target": -1.0, "adaptive_decay": 0.9, "mirostat": 0, "typical_p": 1.0,
        "dynatemp_range": 0.0,
    })
}

/// One token with its likeliest alternatives: natural logarithms, or the probabilities that it was drawn by.
fn probability(token: &TokenAlternatives, format: &LlamaCppFormat) -> Value {
    let (own, list) = match format.is_after_sampling {
        true => ("prob", "top_probs"),
        false => ("logprob", "top_logprobs"),
    };
    let share = |share: &TokenShare| {
        let number = if format.is_after_sampling { share.probability } else { share.logprob };
        let mut value = json!({ "id": share.id, "token": share.text, "bytes": share.bytes });
        value[own] = json!(number);
        value
    };
    let mut value = share(&token.token);
    value[list] = token.others.iter().take(format.n_probs).map(share).collect::<Vec<_>>().into();
    value
}

/// What has come of a completion.
#[derive(Debug, Default)]
struct CompletionParts {
    text: String,
    ids: Vec<u32>,
    probabilities: Vec<Value>,
}

impl CompletionHead {
    /// The whole answer, or the end of a stream: `parts` is what has not been sent.
    fn last(&self, parts: CompletionParts, has_new_line: bool, stats: &TurnStats) -> Value {
        let stop_text = stats.stop_index.and_then(|at| self.stop.get(at as usize));
        let stop_type = match stats.finish {
            Finish::Stop if stop_text.is_some() => "word",
            Finish::Stop | Finish::ToolCalls => "eos",
            Finish::Length | Finish::ContextFull | Finish::TimeUp => "limit",
            Finish::Cancelled => "none",
        };
        let cached = stats.prompt_tokens.saturating_add(stats.generated_tokens).saturating_sub(1);
        let mut value = json!({
            "index": self.index, "content": parts.text,
            "tokens": if self.format.return_tokens { parts.ids } else { Vec::new() },
            "id_slot": -1, "stop": true, "model": self.model, "tokens_predicted": stats.generated_tokens,
            "tokens_evaluated": stats.prompt_tokens, "tokens_cached": cached,
            "generation_settings": self.settings, "prompt": self.prompt, "has_new_line": has_new_line,
            "truncated": stats.finish == Finish::ContextFull, "stop_type": stop_type,
            "stopping_word": stop_text.map(String::as_str).unwrap_or_default(), "timings": timings(stats),
        });
        if self.format.n_probs > 0 {
            value["completion_probabilities"] = parts.probabilities.into();
        }
        self.chosen(value)
    }

    /// Only the fields that the client wants. A path such as `timings/prompt_n` names a field of a field.
    fn chosen(&self, value: Value) -> Value {
        if self.format.fields.is_empty() {
            return value;
        }
        let field = |path: &String| {
            let found = path.split('/').try_fold(&value, |value, name| value.get(name))?;
            Some((path.clone(), found.clone()))
        };
        Value::Object(self.format.fields.iter().filter_map(field).collect::<Map<_, _>>())
    }
}

fn timings(stats: &TurnStats) -> Value {
    let prompt_n = stats.prompt_tokens.saturating_sub(stats.reused_tokens);
    let ms = |n: u32, rate: f64| if rate > 0.0 { f64::from(n) / rate * 1e3 } else { 0.0 };
    let each = |ms: f64, n: u32| if n > 0 { ms / f64::from(n) } else { 0.0 };
    let prompt_ms = ms(prompt_n, stats.prefill_tok_s);
    let predicted_ms = ms(stats.generated_tokens.saturating_sub(1), stats.decode_tok_s);
    let mut value = json!({
        "cache_n": stats.reused_tokens, "prompt_n": prompt_n, "prompt_ms": prompt_ms,
        "prompt_per_token_ms": each(prompt_ms, prompt_n), "prompt_per_second": stats.prefill_tok_s,
        "predicted_n": stats.generated_tokens, "predicted_ms": predicted_ms,
        "predicted_per_token_ms": each(predicted_ms, stats.generated_tokens),
        "predicted_per_second": stats.decode_tok_s,
    });
    if stats.drafted_tokens > 0 {
        value["draft_n"] = stats.drafted_tokens.into();
        value["draft_n_accepted"] = stats.accepted_tokens.into();
    }
    value
}

/// Collects an answer that is sent as one object. Reasoning is text here: the prompt is raw.
#[derive(Debug, Default)]
pub struct CompletionCollector {
    parts: CompletionParts,
    stats: Option<TurnStats>,
}

impl CompletionCollector {
    pub fn take(&mut self, kind: TurnEventKind, head: &CompletionHead) -> Result<()> {
        match kind {
            TurnEventKind::Text { text, ids } | TurnEventKind::Reasoning { text, ids } => {
                self.parts.text.push_str(&text);
                self.parts.ids.extend(ids);
            }
            TurnEventKind::Revised { .. } => {}
            TurnEventKind::Logprobs { tokens } => {
                let probabilities = tokens.iter().map(|token| probability(token, &head.format));
                self.parts.probabilities.extend(probabilities);
            }
            TurnEventKind::Done { stats } => self.stats = Some(stats),
            TurnEventKind::Failed { error } => return Err(error.into()),
            TurnEventKind::ToolCall { .. }
            | TurnEventKind::Queued { .. }
            | TurnEventKind::Loading { .. }
            | TurnEventKind::Prefill { .. }
            | TurnEventKind::Compacting { .. }
            | TurnEventKind::Compacted { .. }
            | TurnEventKind::Notice { .. } => {}
        }
        Ok(())
    }

    pub fn into_value(self, head: &CompletionHead) -> Result<Value> {
        let stats = self.stats.ok_or_else(|| Error::bug("an answer ended without an end"))?;
        let has_new_line = self.parts.text.contains('\n');
        Ok(head.last(self.parts, has_new_line, &stats))
    }
}

/// Writes a stream: an event for each piece, and the figures with the last one.
#[derive(Debug)]
pub struct PieceWriter {
    head: CompletionHead,
    has_new_line: bool,
    n_predicted: usize,
    n_prompt: u32,
    /// Probabilities whose tokens' text has not come, and text without tokens: it goes with the end.
    pending: CompletionParts,
}

impl PieceWriter {
    pub fn new(head: CompletionHead) -> Self {
        Self { head, has_new_line: false, n_predicted: 0, n_prompt: 0, pending: CompletionParts::default() }
    }

    /// An event per token where probabilities are wanted, else one for the piece.
    fn piece(&mut self, text: String, ids: Vec<u32>) -> String {
        self.has_new_line |= text.contains('\n');
        if ids.is_empty() {
            self.pending.text.push_str(&text);
            return String::new();
        }
        let probabilities = std::mem::take(&mut self.pending.probabilities);
        let n = ids.len();
        if self.head.format.n_probs == 0 || probabilities.len() != n {
            return self.event(&text, &ids, probabilities);
        }
        // The text is that of all tokens together: it comes with the last.
        let tokens = ids.into_iter().zip(probabilities).enumerate();
        tokens
            .map(|(at, (id, value))| {
                let text = if at + 1 == n { text.as_str() } else { "" };
                self.event(text, &[id], vec![value])
            })
            .collect()
    }

    fn event(&mut self, text: &str, ids: &[u32], probabilities: Vec<Value>) -> String {
        self.n_predicted += ids.len();
        let mut value = json!({
            "index": self.head.index, "content": text, "tokens": ids, "stop": false, "id_slot": -1,
            "tokens_predicted": self.n_predicted, "tokens_evaluated": self.n_prompt,
        });
        if self.head.format.n_probs > 0 {
            value["completion_probabilities"] = probabilities.into();
        }
        event(&value)
    }
}

impl StreamFormat for PieceWriter {
    fn begin(&mut self) -> String {
        String::new()
    }

    fn write(&mut self, kind: TurnEventKind) -> String {
        match kind {
            TurnEventKind::Text { text, ids } | TurnEventKind::Reasoning { text, ids } => {
                self.piece(text, ids)
            }
            TurnEventKind::Logprobs { tokens } => {
                let probabilities = tokens.iter().map(|token| probability(token, &self.head.format));
                self.pending.probabilities.extend(probabilities);
                String::new()
            }
            TurnEventKind::Prefill { total, .. } => {
                self.n_prompt = total;
                String::new()
            }
            TurnEventKind::Done { stats } => {
                let rest = CompletionParts { ids: Vec::new(), ..std::mem::take(&mut self.pending) };
                event(&self.head.last(rest, self.has_new_line, &stats))
            }
            TurnEventKind::Failed { error } => failed(error),
            TurnEventKind::Revised { .. }
            | TurnEventKind::ToolCall { .. }
            | TurnEventKind::Queued { .. }
            | TurnEventKind::Loading { .. }
            | TurnEventKind::Compacting { .. }
            | TurnEventKind::Compacted { .. }
            | TurnEventKind::Notice { .. } => String::new(),
        }
    }

    fn end(&mut self) -> String {
        String::new()
    }
}

fn failed(error: ErrorInfo) -> String {
    event(&LlamaCppFault::from(Error::from(error)).body())
}

fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}
