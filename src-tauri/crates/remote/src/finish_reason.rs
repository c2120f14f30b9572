//! Why an answer ended, in the words of each server.

use serde_json::Value;

use super::answer_piece::Reason;

/// What a finish reason means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishWord {
    /// The answer goes on.
    Nothing,
    Reason(Reason),
    /// The server gave up, with this word for it.
    Interrupted(String),
}

/// Reads a finish reason: a word, or SGLang's object with a `type`.
pub fn finish_word(value: &Value) -> FinishWord {
    let word = match value {
        Value::String(word) => word.as_str(),
        value => value.get("type").and_then(Value::as_str).unwrap_or_default(),
    };
    let reason = match word.trim().to_ascii_lowercase().as_str() {
        "" | "null" | "none" | "unspecified" | "finish_reason_unspecified" => return FinishWord::Nothing,
        "tool_calls" | "tool_call" | "tool_use" | "function_call" => Reason::Calls,
        "length" | "max_tokens" | "max_length" | "model_length" | "max_output_tokens" | "max_new_tokens" => {
            Reason::Length
        }
        "content_filter" | "content_filtered" | "safety" | "recitation" | "blocklist" | "spii"
        | "refusal" | "prohibited_content" | "sensitive" => Reason::Filtered,
        "error"
        | "engine_error"
        | "network_error"
        | "insufficient_system_resource"
        | "abort"
        | "aborted"
        | "cancelled"
        | "canceled"
        | "timeout"
        | "malformed_function_call"
        | "failed" => {
            return FinishWord::Interrupted(word.trim().into());
        }
        _ => Reason::Stop,
    };
    FinishWord::Reason(reason)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_of_all_servers_are_known() {
        let check = |word: Value, expected: FinishWord| assert_eq!(finish_word(&word), expected, "{word}");
        for word in [json!(null), json!(""), json!("null"), json!("None"), json!(7)] {
            check(word, FinishWord::Nothing);
        }
        for word in ["stop", "STOP", "eos", "end_turn", "stop_sequence", "COMPLETE"] {
            check(json!(word), FinishWord::Reason(Reason::Stop));
        }
        check(json!("MAX_TOKENS"), FinishWord::Reason(Reason::Length));
        check(json!({ "type": "length", "length": 5 }), FinishWord::Reason(Reason::Length));
        check(json!("function_call"), FinishWord::Reason(Reason::Calls));
        check(json!("SAFETY"), FinishWord::Reason(Reason::Filtered));
        check(json!("network_error"), FinishWord::Interrupted("network_error".into()));
    }
}
