//! The pieces of a streamed answer: text, reasoning, tool calls in fragments, finish reason, usage.

use documents::lenient_json::{self, ParsedJson, SurrogateJoiner};
use serde_json::Value;

use super::answer_piece::{Call, Delta, Reason, Usage, Wrong};
use super::content::{self, PieceContent};
use super::finish_reason::{FinishWord, finish_word};
use super::reasoning::Thinking;
use super::server_words::ServerFailure;
use super::tool_fragments::CallFragments;

/// Longest part of data that is no JSON that is kept for the error message.
const MAX_STRAY_CHARS: usize = 300;

/// An answer as it grows.
#[derive(Debug, Default)]
pub struct Reply {
    pub reason: Option<Reason>,
    pub usage: Option<Usage>,
    /// `[DONE]` has come.
    pub is_done: bool,
    /// The server's word for an end before the end.
    pub interruption: Option<String>,
    /// The last data that was no JSON, such as a keep-alive or words of a gateway.
    pub stray: String,
    calls: CallFragments,
    thinking: Thinking,
    text_pairs: SurrogateJoiner,
    reasoning_pairs: SurrogateJoiner,
    /// All that has come, since a message may repeat it.
    seen: PieceContent,
    has_heard: bool,
    /// Text came in pieces, not as messages.
    has_deltas: bool,
}

impl Reply {
    /// The data of one event: one object, or several one after another.
    pub fn take(&mut self, data: &str) -> Result<Delta, Wrong> {
        let data = without_prefixes(data);
        if data.is_empty() || data.starts_with(':') {
            return Ok(Delta::default());
        }
        if data.trim_matches('"').eq_ignore_ascii_case("[DONE]") {
            self.is_done = true;
            return Ok(Delta::default());
        }
        match lenient_json::parse(data) {
            Ok(parsed) => self.take_values(&parsed),
            Err(_) if data.contains('\n') => {
                let mut delta = Delta::default();
                for line in data.lines() {
                    delta.append(self.take(line)?);
                }
                Ok(delta)
            }
            Err(error) if data.starts_with('{') => Err(Wrong::Malformed(error.to_string())),
            Err(_) => {
                // Each server writes keep-alives in another way.
                self.stray = data.chars().take(MAX_STRAY_CHARS).collect();
                Ok(Delta::default())
            }
        }
    }

    fn take_values(&mut self, parsed: &ParsedJson) -> Result<Delta, Wrong> {
        let mut delta = Delta::default();
        let items = parsed.values.iter().flat_map(|value| match value {
            Value::Array(items) => items.as_slice(),
            value => std::slice::from_ref(value),
        });
        for value in items.filter(|value| value.is_object()) {
            delta.append(self.take_object(value, parsed.has_lone)?);
        }
        Ok(delta)
    }

    fn take_object(&mut self, value: &Value, has_lone: bool) -> Result<Delta, Wrong> {
        if let Some(mut failure) = ServerFailure::of_event(value) {
            failure.words = lenient_json::without_stand_ins(&failure.words);
            return Err(Wrong::Server(Box::new(failure)));
        }
        self.has_heard |= value.get("choices").is_some() || value.get("usage").is_some();
        let usages = [value.get("usage"), value.pointer("/x_groq/usage")];
        if let Some(usage) = usages.into_iter().flatten().find_map(usage) {
            self.usage = Some(usage);
        }
        let choices = value.get("choices").filter(|choices| !choices.is_null());
        let choice = match choices {
            Some(choice @ Value::Object(_)) => choice,
            Some(choices) => choices.get(0).unwrap_or(&Value::Null),
            // Ollama's own interface.
            None => value,
        };
        let reason = ["finish_reason", "finishReason", "done_reason"].iter().find_map(|key| choice.get(*key));
        match reason.map(finish_word) {
            Some(FinishWord::Reason(reason)) if self.reason.is_none() || reason != Reason::Stop => {
                self.reason = Some(reason);
            }
            Some(FinishWord::Interrupted(word)) => self.interruption = Some(word),
            Some(FinishWord::Reason(_) | FinishWord::Nothing) | None => {}
        }
        let piece = content::piece_of(choice);
        self.calls.take(piece.words, piece.is_message, has_lone)?;
        if let Some(message) = choice.get("message").filter(|_| !piece.is_message) {
            self.calls.take(message, true, has_lone)?;
        }
        let said = content::content_of(piece.words);
        Ok(self.take_content(said, piece.is_message, has_lone))
    }

    fn take_content(&mut self, said: PieceContent, is_message: bool, has_lone: bool) -> Delta {
        let (ends, has_deltas) = (self.reason.is_some(), self.has_deltas);
        self.has_deltas |= !is_message && !said.text.is_empty();
        let news = |seen: &mut String, said: String| {
            let repeats = is_message && !seen.is_empty() && (ends || said.len() > seen.len());
            let is_known = repeats && ends && has_deltas && seen.trim().ends_with(said.trim());
            let news = match said.strip_prefix(seen.as_str()).filter(|_| repeats) {
                Some(rest) => rest.to_owned(),
                // It was trimmed, or its reasoning was taken out.
                None if is_known => String::new(),
                None => said,
            };
            seen.push_str(&news);
            news
        };
        let text = news(&mut self.seen.text, said.text);
        let reasoning = news(&mut self.seen.reasoning, said.reasoning);
        if !reasoning.is_empty() {
            self.thinking.came_apart();
        }
        let mut delta = self.thinking.push(&self.text_pairs.join(&text, has_lone));
        delta.reasoning.insert_str(0, &self.reasoning_pairs.join(&reasoning, has_lone));
        delta
    }

    /// What was held back, since it might have been a tag or half a character.
    pub fn rest(&mut self) -> Delta {
        let mut delta = self.thinking.push(self.text_pairs.rest());
        delta.append(self.thinking.end());
        delta.reasoning.insert_str(0, self.reasoning_pairs.rest());
        delta
    }

    /// Whether the answer is all there: the server said so, or its calls are whole.
    pub fn is_whole(&self) -> bool {
        self.interruption.is_none() && (self.is_done || self.reason.is_some() || self.calls.are_whole())
    }

    /// Whether anything of the protocol has come.
    pub fn has_heard(&self) -> bool {
        self.has_heard
    }

    /// In order, once the answer has ended. Those without a name are none.
    pub fn calls(&mut self) -> Vec<Call> {
        self.calls.end()
    }
}

/// Drops what gateways put before data a second time.
fn without_prefixes(data: &str) -> &str {
    let mut data = data.trim_start_matches('\u{feff}').trim();
    while let Some(inner) = data.strip_prefix("data:") {
        data = inner.trim_start();
    }
    data
}

fn usage(value: &Value) -> Option<Usage> {
    let count = |paths: &[&str]| {
        let number = paths.iter().find_map(|path| value.pointer(path)?.as_u64());
        number.map(|n| u32::try_from(n).unwrap_or(u32::MAX))
    };
    let reused = ["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens"];
    Some(Usage {
        prompt_tokens: count(&["/prompt_tokens", "/input_tokens"])?,
        reused_tokens: count(&reused).unwrap_or(0),
        generated_tokens: count(&["/completion_tokens", "/output_tokens"]).unwrap_or(0),
    })
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
            let expected = Delta { text: text.into(), reasoning: reasoning.into(), is_revision: false };
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
            extra: None,
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
        let words = |data: Value| match Reply::default().take(&data.to_string()) {
            Err(Wrong::Server(failure)) => failure.words,
            other => panic!("{other:?}"),
        };
        assert_eq!(words(json!({ "error": { "message": "out of memory" } })), "out of memory");
        assert_eq!(words(json!({ "error": "gone" })), "gone");
        let many: Vec<_> = (0..200).map(|n| json!({ "index": n, "function": { "name": "f" } })).collect();
        assert_eq!(reply.take(&chunk(json!({ "tool_calls": many }))), Err(Wrong::TooLong));
    }

    /// The data of events, and the text, reasoning and calls that come of them.
    fn check(events: &[Value], text: &str, reasoning: &str, calls: &[&str]) {
        let data: Vec<String> = events.iter().map(Value::to_string).collect();
        check_data(&data.iter().map(String::as_str).collect::<Vec<_>>(), text, reasoning, calls);
    }

    fn check_data(events: &[&str], text: &str, reasoning: &str, calls: &[&str]) {
        let mut reply = Reply::default();
        let mut all = Delta::default();
        for event in events {
            all.append(reply.take(event).unwrap());
        }
        all.append(reply.rest());
        let told: Vec<String> =
            reply.calls().iter().map(|it| format!("{}{}", it.name, it.arguments)).collect();
        assert_eq!(
            (all.text.as_str(), all.reasoning.trim_end(), told),
            (text, reasoning, calls.iter().map(|it| (*it).to_owned()).collect()),
            "{events:?}"
        );
    }

    #[test]
    fn messages_and_texts_in_a_stream_are_read_once() {
        let of = |choice: Value| json!({ "choices": [choice] });
        let delta = |text: &str| of(json!({ "delta": { "content": text } }));
        let message = |text: &str, finish: Option<&str>| {
            of(json!({ "message": { "content": text }, "finish_reason": finish }))
        };
        check(&[message("Hello world", Some("stop"))], "Hello world", "", &[]);
        check(
            &[delta("Hello "), delta("world"), message("Hello world", Some("stop"))],
            "Hello world",
            "",
            &[],
        );
        check(&[message("Hello", None), message("Hello world", None)], "Hello world", "", &[]);
        check(
            &[delta(" Hello "), delta("world\n"), message("Hello world", Some("stop"))],
            " Hello world\n",
            "",
            &[],
        );
        check(&[message("Hello ", None), message("world", None)], "Hello world", "", &[]);
        let both = json!({ "delta": { "content": "world" }, "message": { "content": "Hello world" } });
        check(&[delta("Hello "), of(both)], "Hello world", "", &[]);
        check(
            &[of(json!({ "text": "Hello " })), of(json!({ "text": "world", "finish_reason": "stop" }))],
            "Hello world",
            "",
            &[],
        );
        check(&[json!({ "choices": { "delta": { "content": "Hi" } } })], "Hi", "", &[]);
        check(
            &[
                json!({ "message": { "content": "Hi" }, "done": false }),
                json!({ "message": { "content": "!" }, "done_reason": "stop" }),
            ],
            "Hi!",
            "",
            &[],
        );
        let call = json!([{ "id": "a", "function": { "name": "f", "arguments": "{\"x\":1}" } }]);
        check(
            &[
                delta("Now."),
                of(
                    json!({ "delta": {}, "message": { "content": "Now.", "tool_calls": call }, "finish_reason": "tool_calls" }),
                ),
            ],
            "Now.",
            "",
            &["f{\"x\":1}"],
        );
        check(
            &[
                of(json!({ "delta": { "tool_calls": call } })),
                of(json!({ "message": { "tool_calls": call } })),
            ],
            "",
            "",
            &["f{\"x\":1}"],
        );
    }

    #[test]
    fn odd_events_cost_nothing() {
        let hello = "{\"choices\":[{\"delta\":{\"content\":\"Hello \"}}]}";
        let world = "{\"choices\":[{\"delta\":{\"content\":\"world\"}}]}";
        for odd in [
            "",
            " ",
            "[HEARTBEAT]",
            "ping",
            ": OPENROUTER PROCESSING",
            "null",
            "\"\"",
            "[]",
            "{}",
            "7",
            "{\"type\":\"ping\"}",
            "{\"choices\":null}",
            "{\"choices\":[]}",
        ] {
            check_data(&[hello, odd, world, "[DONE]"], "Hello world", "", &[]);
        }
        check_data(&[&format!("\u{feff}{hello}"), &format!("data: {world}")], "Hello world", "", &[]);
        check_data(&[&format!("{hello}\n{world}\n[DONE]")], "Hello world", "", &[]);
        check_data(&[&format!("{hello}{world}")], "Hello world", "", &[]);
        check_data(&["{\"choices\":[{\"delta\":{\"content\":\"a\"},\"logprobs\":NaN}]}"], "a", "", &[]);
        let high = r#"{"choices":[{"delta":{"content":"Hello \ud83d"}}]}"#;
        let low = r#"{"choices":[{"delta":{"content":"\ude00 world"}}]}"#;
        check_data(&[high, low], "Hello 😀 world", "", &[]);
        check_data(&[high, world], "Hello \u{fffd}world", "", &[]);
        check_data(&[high], "Hello \u{fffd}", "", &[]);
        check_data(
            &[&high.replace("content", "reasoning"), &low.replace("content", "reasoning")],
            "",
            "Hello 😀 world",
            &[],
        );
        let mut reply = Reply::default();
        reply.take("Internal Server Error").unwrap();
        assert_eq!(reply.stray, "Internal Server Error");
    }

    #[test]
    fn an_end_is_an_end_only_with_a_reason() {
        let check = |reason: Value, expected: bool| {
            let mut reply = Reply::default();
            let event = json!({ "choices": [{ "delta": { "content": "a" }, "finish_reason": reason }] });
            reply.take(&event.to_string()).unwrap();
            assert_eq!(reply.is_whole(), expected, "{reason}");
        };
        for reason in [json!(null), json!(""), json!("null"), json!("error"), json!("abort")] {
            check(reason, false);
        }
        for reason in [json!("stop"), json!("length"), json!("eos"), json!({ "type": "stop" })] {
            check(reason, true);
        }
        let mut reply = Reply::default();
        let calls = json!([{ "id": "a", "function": { "name": "f", "arguments": "{}" } }]);
        reply.take(&chunk(json!({ "tool_calls": calls }))).unwrap();
        assert!(reply.is_whole(), "some end with their calls");
    }
}
