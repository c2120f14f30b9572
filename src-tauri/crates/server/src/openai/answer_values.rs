//! Parts of answers that several routes share: why it ended, token counts, times, probabilities.

use axum::http::StatusCode;
use contract::Error;
use contract::types::{ErrorInfo, Finish, TokenAlternatives, TokenShare, ToolCall, TurnStats};
use serde_json::{Value, json};

use crate::fault::OpenAiFault;

/// Logarithm that stands for a probability of 0, as in OpenAI's API.
const MIN_LOGPROB: f32 = -9999.0;

/// What clients may show as the version of the program that answered. Clients of llama.cpp expect the letter.
pub const FINGERPRINT: &str = concat!("b-inglenook-", env!("CARGO_PKG_VERSION"));

/// Fields that every part of an answer repeats.
#[derive(Debug, Clone)]
pub struct Identity {
    pub id: String,
    /// Unix time in seconds.
    pub created: i64,
    pub model: String,
}

/// Error of a turn that has already started.
pub fn fault_of_turn(error: &ErrorInfo) -> OpenAiFault {
    let fault = OpenAiFault::from(Error::from(error.clone()));
    match fault.status {
        // Clients can't fix the server's memory, and most don't know status 507.
        StatusCode::INSUFFICIENT_STORAGE => OpenAiFault { status: StatusCode::SERVICE_UNAVAILABLE, ..fault },
        _ => fault,
    }
}

/// The word for why an answer ended.
pub fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::Cancelled => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length | Finish::ContextFull | Finish::TimeUp => "length",
    }
}

/// A call of a function.
pub fn call_value(call: &ToolCall) -> Value {
    let function = json!({ "name": call.name, "arguments": call.arguments });
    json!({ "id": call.id, "type": "function", "function": function })
}

/// Token counts of all choices; choices of one prompt share its tokens.
pub fn usage(all: &[&TurnStats], n_per_prompt: usize) -> Value {
    let prompts = || all.iter().step_by(n_per_prompt.max(1));
    let sum = |count: fn(&TurnStats) -> u32| all.iter().map(|stats| u64::from(count(stats))).sum::<u64>();
    let prompt_tokens: u64 = prompts().map(|stats| u64::from(stats.prompt_tokens)).sum();
    let cached_tokens: u64 = prompts().map(|stats| u64::from(stats.reused_tokens)).sum();
    let completion_tokens = sum(|stats| stats.generated_tokens);
    json!({
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": { "cached_tokens": cached_tokens },
        "completion_tokens_details": {
            "accepted_prediction_tokens": sum(|stats| stats.accepted_tokens),
            "rejected_prediction_tokens": sum(|stats| stats.drafted_tokens.saturating_sub(stats.accepted_tokens)),
        },
    })
}

/// Times of an answer in llama.cpp's form.
pub fn timings(stats: &TurnStats) -> Value {
    let n_read = stats.prompt_tokens.saturating_sub(stats.reused_tokens);
    let ms = |n: u32, rate: f64| if rate > 0.0 { f64::from(n) / rate * 1000.0 } else { 0.0 };
    json!({
        "cache_n": stats.reused_tokens,
        "prompt_n": n_read,
        "prompt_ms": ms(n_read, stats.prefill_tok_s),
        "prompt_per_second": stats.prefill_tok_s,
        "predicted_n": stats.generated_tokens,
        "predicted_ms": ms(stats.generated_tokens, stats.decode_tok_s),
        "predicted_per_second": stats.decode_tok_s,
    })
}

/// A logarithm that JSON can hold.
pub fn finite_logprob(share: &TokenShare) -> f32 {
    share.logprob.max(MIN_LOGPROB)
}

fn share_value(share: &TokenShare) -> Value {
    let bytes = if share.bytes.is_empty() { share.text.as_bytes() } else { &share.bytes };
    json!({ "token": share.text, "logprob": finite_logprob(share), "bytes": bytes })
}

/// Probabilities of tokens, as chat completions and responses write them.
pub fn logprobs_value(tokens: &[TokenAlternatives]) -> Value {
    let token = |token: &TokenAlternatives| {
        let mut value = share_value(&token.token);
        value["top_logprobs"] = token.others.iter().map(share_value).collect();
        value
    };
    tokens.iter().map(token).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Figures of an answer of two tokens to a prompt of three.
    pub fn stats(finish: Finish) -> TurnStats {
        let value = json!({
            "finish": finish, "prompt_tokens": 3, "reused_tokens": 1, "generated_tokens": 2, "context_tokens": 5,
            "context_limit": 64, "load_ms": 0.0, "ttft_ms": 1.0, "prefill_tok_s": 4.0, "decode_tok_s": 2.0,
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn choices_share_their_prompt() {
        let one = stats(Finish::Stop);
        let usage = usage(&[&one, &one, &one, &one], 2);
        assert_eq!(usage["prompt_tokens"], 6);
        assert_eq!(usage["completion_tokens"], 8);
        assert_eq!(
            (&usage["total_tokens"], &usage["prompt_tokens_details"]["cached_tokens"]),
            (&json!(14), &json!(2))
        );
        let times = timings(&one);
        assert_eq!(
            (&times["prompt_n"], &times["prompt_ms"], &times["predicted_ms"]),
            (&json!(2), &json!(500.0), &json!(1000.0))
        );
    }

    #[test]
    fn probabilities_of_nothing_are_numbers() {
        let share = |text: &str, logprob: f32, bytes: &[u8]| TokenShare {
            id: 1,
            text: text.into(),
            probability: 0.0,
            logprob,
            bytes: bytes.to_vec(),
        };
        let token = TokenAlternatives {
            token: share("\u{fffd}", f32::NEG_INFINITY, &[0xf0, 0x9f]),
            others: vec![share("a", -0.5, &[])],
        };
        let value = logprobs_value(&[token]);
        assert_eq!((&value[0]["logprob"], &value[0]["bytes"]), (&json!(-9999.0), &json!([0xf0, 0x9f])));
        assert_eq!(value[0]["top_logprobs"], json!([{ "token": "a", "logprob": -0.5, "bytes": [97] }]));
    }
}
