//! The pieces of a streamed answer: text, reasoning, tool calls in fragments, finish reason, usage.

use std::collections::BTreeMap;

use serde_json::Value;

use super::reasoning::{Delta, Thinking};

/// Most calls of one answer, and the longest arguments of one.
const MAX_CALLS: usize = 128;
const MAX_ARGUMENT_BYTES: usize = 1 << 20;

/// Why an answer ended, as the server says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Stop,
    Calls,
    Length,
    /// The server kept something back.
    Filtered,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub prompt_tokens: u32,
    pub reused_tokens: u32,
    pub generated_tokens: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    pub id: String,
    pub name: String,
    pub arguments: String,
}

/// What can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// It is no event of this protocol.
    Malformed(String),
    /// The server's own words of a failure.
    Server(String),
    TooLong,
}

/// An answer as it grows.
#[derive(Debug, Default)]
pub struct Reply {
    pub reason: Option<Reason>,
    pub usage: Option<Usage>,
    /// `[DONE]` has come.
    pub is_done: bool,
    calls: BTreeMap<u64, Call>,
    thinking: Thinking,
}

impl Reply {
    /// The data of one event.
    pub fn take(&mut self, data: &str) -> Result<Delta, Wrong> {
        if data.trim() == "[DONE]" {
            self.is_done = true;
            return Ok(Delta::default());
        }
        let value: Value = serde_json::from_str(data).map_err(|error| Wrong::Malformed(error.to_string()))?;
        self.take_value(&value, "delta")
    }

    /// An answer that came as one. `key`: where the words are.
    pub fn take_value(&mut self, value: &Value, key: &str) -> Result<Delta, Wrong> {
        if let Some(error) = value.get("error").filter(|error| !error.is_null()) {
            return Err(Wrong::Server(words_of(error)));
        }
        if !value.is_object() {
            return Err(Wrong::Malformed("it is not an object".into()));
        }
        if let Some(usage) = value.get("usage").and_then(usage) {
            self.usage = Some(usage);
        }
        let Some(choice) = value.get("choices").and_then(|choices| choices.get(0)) else {
            return Ok(Delta::default());
        };
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.reason = Some(match reason {
                "tool_calls" | "function_call" => Reason::Calls,
                "length" => Reason::Length,
                "content_filter" => Reason::Filtered,
                _ => Reason::Stop,
            });
        }
        let words = choice.get(key).unwrap_or(&Value::Null);
        self.take_calls(words.get("tool_calls"))?;
        let text = |key: &str| words.get(key).and_then(Value::as_str).unwrap_or_default();
        let reasoning = ["reasoning_content", "reasoning", "thinking"].map(text);
        let own = reasoning.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        let mut delta = self.thinking.push(text("content"));
        delta.reasoning.insert_str(0, own);
        Ok(delta)
    }

    /// What was held back, since it might have been a tag.
    pub fn rest(&mut self) -> Delta {
        self.thinking.end()
    }

    /// In order, once the answer has ended. Those without a name are none.
    pub fn calls(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.calls).into_values().filter(|call| !call.name.is_empty()).collect()
    }

    fn take_calls(&mut self, fragments: Option<&Value>) -> Result<(), Wrong> {
        let fragments = fragments.and_then(Value::as_array).into_iter().flatten();
        for fragment in fragments {
            let next = self.calls.len() as u64;
            let text = |path: &str| fragment.pointer(path).and_then(Value::as_str);
            let index = fragment.get("index").and_then(Value::as_u64);
            // Ollama gives every call the index 0: another id is another call.
            let index = match (index, text("/id")) {
                (Some(at), Some(id))
                    if self.calls.get(&at).is_some_and(|call| !call.id.is_empty() && call.id != id) =>
                {
                    next
                }
                (Some(at), _) => at,
                (None, _) => next,
            };
            let call = self.calls.entry(index).or_default();
            if let Some(id) = text("/id").filter(|id| !id.is_empty()) {
                call.id = id.into();
            }
            if let Some(name) = text("/function/name") {
                call.name.push_str(name);
            }
            match fragment.pointer("/function/arguments") {
                Some(Value::String(text)) => call.arguments.push_str(text),
                Some(object @ Value::Object(_)) => call.arguments = object.to_string(),
                Some(_) | None => {}
            }
            if self.calls.len() > MAX_CALLS
                || self.calls.values().any(|call| call.arguments.len() > MAX_ARGUMENT_BYTES)
            {
                return Err(Wrong::TooLong);
            }
        }
        Ok(())
    }
}

fn usage(value: &Value) -> Option<Usage> {
    let count = |path: &str| {
        value.pointer(path).and_then(Value::as_u64).map(|n| u32::try_from(n).unwrap_or(u32::MAX))
    };
    Some(Usage {
        prompt_tokens: count("/prompt_tokens")?,
        reused_tokens: count("/prompt_tokens_details/cached_tokens").unwrap_or(0),
        generated_tokens: count("/completion_tokens").unwrap_or(0),
    })
}

/// A server's error message, in whatever form.
pub fn words_of(error: &Value) -> String {
    let found = [error, &error["error"]].into_iter().find_map(|value| {
        let direct = value.as_str();
        direct.or_else(|| ["message", "detail", "error"].iter().find_map(|key| value.get(key)?.as_str()))
    });
    found.map_or_else(|| error.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chunk(delta: Value) -> String {
        json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] }).to_string()
    }

    #[test]
    fn texts_come_under_every_name() {
        let mut reply = Reply::default();
        let cases = [
            (json!({ "role": "assistant", "content": "" }), "", ""),
            (json!({ "reasoning_content": "a" }), "", "a"),
            (json!({ "reasoning": "b", "reasoning_content": "" }), "", "b"),
            (json!({ "content": null, "thinking": "c" }), "", "c"),
            (json!({ "content": "d" }), "d", ""),
            (json!({}), "", ""),
        ];
        for (delta, text, reasoning) in cases {
            let expected = Delta { text: text.into(), reasoning: reasoning.into() };
            assert_eq!(reply.take(&chunk(delta)), Ok(expected));
        }
        let end = json!({
            "choices": [{ "delta": {}, "finish_reason": "length" }],
            "usage": { "prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": { "cached_tokens": 5 } },
        });
        reply.take(&end.to_string()).unwrap();
        let expected = Usage { prompt_tokens: 7, reused_tokens: 5, generated_tokens: 3 };
        assert_eq!((reply.reason, reply.usage), (Some(Reason::Length), Some(expected)));
        reply.take("{\"choices\":[],\"usage\":null}").unwrap();
        assert_eq!(reply.usage, Some(expected));
        assert!(!reply.is_done);
        reply.take("[DONE]").unwrap();
        assert!(reply.is_done);
    }

    #[test]
    fn calls_come_in_fragments_and_whole() {
        let mut reply = Reply::default();
        let mut take = |calls: Value| reply.take(&chunk(json!({ "tool_calls": calls }))).unwrap();
        take(json!([{ "index": 0, "id": "a", "function": { "name": "look", "arguments": "" } }]));
        take(json!([{ "index": 0, "function": { "arguments": "{\"x\"" } }]));
        take(json!([{ "index": 1, "id": "b", "function": { "name": "go", "arguments": { "y": 2 } } }]));
        take(json!([{ "index": 0, "function": { "arguments": ":1}" } }]));
        take(json!([{ "index": 0, "id": "c", "function": { "name": "look", "arguments": "{}" } }]));
        let call = |id: &str, name: &str, arguments: &str| Call {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        };
        assert_eq!(
            reply.calls(),
            [call("a", "look", "{\"x\":1}"), call("b", "go", "{\"y\":2}"), call("c", "look", "{}")]
        );
    }

    #[test]
    fn what_is_wrong_is_told_apart() {
        let mut reply = Reply::default();
        assert!(matches!(reply.take("{"), Err(Wrong::Malformed(_))));
        assert!(matches!(reply.take("[1]"), Err(Wrong::Malformed(_))));
        let wrong = |data: Value| Reply::default().take(&data.to_string());
        let server = |words: &str| Err(Wrong::Server(words.into()));
        assert_eq!(wrong(json!({ "error": { "message": "out of memory" } })), server("out of memory"));
        assert_eq!(wrong(json!({ "error": "gone" })), server("gone"));
        let many: Vec<_> = (0..200).map(|n| json!({ "index": n, "function": { "name": "f" } })).collect();
        assert_eq!(reply.take(&chunk(json!({ "tool_calls": many }))), Err(Wrong::TooLong));
    }
}
