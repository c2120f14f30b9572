//! Writes chat completions: whole, or as a stream of chunks.

use contract::Error;
use contract::types::{TokenAlternatives, TurnEventKind, TurnStats};
use serde_json::{Value, json};

use super::request::AnswerShape;
use crate::fault::OpenAiFault;
use crate::openai::answer_values::{
    FINGERPRINT, Identity, call_value, fault_of_turn, finish_reason, logprobs_value, timings, usage,
};
use crate::openai::running_timings::AnswerClock;
use crate::openai::turn_set::ChoiceEvent;
use crate::stream::event;

/// Writes a stream: the role of each choice, the chunks, one `finish_reason` each, the usage if requested, and
/// `[DONE]`.
pub struct StreamWriter {
    identity: Identity,
    shape: AnswerShape,
    choices: Vec<StreamedChoice>,
    /// Where chunks have times.
    clock: Option<AnswerClock>,
    has_failed: bool,
}

#[derive(Default)]
struct StreamedChoice {
    n_calls: usize,
    /// Of the text that follows.
    logprobs: Vec<TokenAlternatives>,
    /// Prompt tokens that were cached, once it is known.
    n_cached: Option<u32>,
    stats: Option<TurnStats>,
}

impl StreamWriter {
    pub fn new(identity: Identity, shape: AnswerShape, n_choices: usize) -> Self {
        let choices = (0..n_choices).map(|_| StreamedChoice::default()).collect();
        let clock = shape.has_chunk_timings.then(AnswerClock::start);
        Self { identity, shape, choices, clock, has_failed: false }
    }

    /// Writes the first chunk of each choice.
    pub fn begin(&mut self) -> String {
        let role = json!({ "role": "assistant", "content": null });
        (0..self.choices.len()).map(|choice| self.chunk(choice, &role, None)).collect()
    }

    pub fn write(&mut self, ChoiceEvent { choice, kind }: ChoiceEvent) -> String {
        match kind {
            TurnEventKind::Queued { .. }
            | TurnEventKind::Loading { .. }
            | TurnEventKind::Compacting { .. }
            | TurnEventKind::Compacted { .. }
            | TurnEventKind::Notice { .. } => String::new(),
            TurnEventKind::Prefill { done, total } => {
                if let Some(clock) = &mut self.clock {
                    clock.note_prompt(done, total);
                }
                self.progress(choice, done, total)
            }
            TurnEventKind::Logprobs { tokens } => {
                self.choices[choice].logprobs.extend(tokens);
                String::new()
            }
            TurnEventKind::Text { text, .. } if text.is_empty() => String::new(),
            TurnEventKind::Text { text, ids } => {
                self.timed_chunk(choice, &json!({ "content": text }), ids.len())
            }
            TurnEventKind::Reasoning { text, ids } => {
                // The probabilities are those of the answer.
                self.choices[choice].logprobs.clear();
                self.timed_chunk(choice, &json!({ "reasoning_content": text }), ids.len())
            }
            // What was sent can't be taken back, but clients know the tag.
            TurnEventKind::Revised { text, .. } => {
                self.chunk(choice, &json!({ "content": format!("</think>\n\n{text}") }), None)
            }
            TurnEventKind::ToolCall { call } => self.call(choice, &call_value(&call)),
            TurnEventKind::Done { stats } => self.done(choice, stats),
            TurnEventKind::Failed { error } => {
                self.has_failed = true;
                event_of(&fault_of_turn(&error))
            }
        }
    }

    /// Writes `[DONE]`; a failed stream closes without it, since clients have the error.
    pub fn end(&self) -> String {
        if self.has_failed { String::new() } else { "data: [DONE]\n\n".into() }
    }

    fn call(&mut self, choice: usize, call: &Value) -> String {
        let state = &mut self.choices[choice];
        let index = state.n_calls;
        if index > 0 && !self.shape.is_parallel {
            return String::new();
        }
        state.n_calls += 1;
        let delta = match self.shape.is_legacy {
            true => json!({ "function_call": call["function"] }),
            false => {
                let mut call = call.clone();
                call["index"] = index.into();
                json!({ "tool_calls": [call] })
            }
        };
        self.chunk(choice, &delta, None)
    }

    fn done(&mut self, choice: usize, stats: TurnStats) -> String {
        let reason = reason(&stats, self.shape);
        self.choices[choice].logprobs.clear();
        let mut text = self.chunk(choice, &json!({}), Some(reason));
        self.choices[choice].stats = Some(stats);
        let all: Vec<&TurnStats> = self.choices.iter().filter_map(|choice| choice.stats.as_ref()).collect();
        if all.len() < self.choices.len() || !self.shape.include_usage {
            return text;
        }
        let counts = usage(&all, all.len());
        let mut last = self.envelope(&json!([]), &counts);
        last["timings"] = timings(all[0]);
        text.push_str(&event(&last));
        text
    }

    fn progress(&mut self, choice: usize, done: u32, total: u32) -> String {
        if !self.shape.has_progress {
            return String::new();
        }
        let cache = *self.choices[choice].n_cached.get_or_insert(done);
        let mut chunk =
            self.envelope(&json!([choice_value(choice, &json!({}), &Value::Null, None)]), &Value::Null);
        chunk["prompt_progress"] = json!({ "total": total, "cache": cache, "processed": done });
        event(&chunk)
    }

    /// A chunk of `n_tokens` tokens, with the times so far where the client wants them.
    fn timed_chunk(&mut self, choice: usize, delta: &Value, n_tokens: usize) -> String {
        let timings = self.clock.as_mut().map(|clock| clock.note_tokens(n_tokens));
        let mut chunk = self.chunk_value(choice, delta, None);
        if let Some(timings) = timings {
            chunk["timings"] = timings;
        }
        event(&chunk)
    }

    fn chunk(&mut self, choice: usize, delta: &Value, finish: Option<&str>) -> String {
        event(&self.chunk_value(choice, delta, finish))
    }

    fn chunk_value(&mut self, choice: usize, delta: &Value, finish: Option<&str>) -> Value {
        let tokens = std::mem::take(&mut self.choices[choice].logprobs);
        let logprobs = match self.shape.has_logprobs && !tokens.is_empty() {
            true => json!({ "content": logprobs_value(&tokens), "refusal": null }),
            false => Value::Null,
        };
        self.envelope(&json!([choice_value(choice, delta, &logprobs, finish)]), &Value::Null)
    }

    fn envelope(&self, choices: &Value, usage: &Value) -> Value {
        let Identity { id, created, model } = &self.identity;
        let mut chunk = json!({
            "id": id, "object": "chat.completion.chunk", "created": created, "model": model,
            "system_fingerprint": FINGERPRINT, "choices": choices,
        });
        if self.shape.include_usage {
            chunk["usage"] = usage.clone();
        }
        chunk
    }
}

fn choice_value(choice: usize, delta: &Value, logprobs: &Value, finish: Option<&str>) -> Value {
    json!({ "index": choice, "delta": delta, "logprobs": logprobs, "finish_reason": finish })
}

fn event_of(fault: &OpenAiFault) -> String {
    event(&fault.body())
}

fn reason(stats: &TurnStats, shape: AnswerShape) -> &'static str {
    match finish_reason(stats.finish) {
        "tool_calls" if shape.is_legacy => "function_call",
        reason => reason,
    }
}

/// Collects an answer that is sent, or stored, as one completion.
#[derive(Clone)]
pub struct CompletionBuilder {
    shape: AnswerShape,
    choices: Vec<CollectedChoice>,
}

#[derive(Clone, Default)]
struct CollectedChoice {
    text: String,
    reasoning: String,
    calls: Vec<Value>,
    /// Of the text so far, and of what follows it.
    logprobs: Vec<TokenAlternatives>,
    pending: Vec<TokenAlternatives>,
    stats: Option<TurnStats>,
}

impl CompletionBuilder {
    pub fn new(shape: AnswerShape, n_choices: usize) -> Self {
        Self { shape, choices: vec![CollectedChoice::default(); n_choices] }
    }

    pub fn take(&mut self, event: ChoiceEvent) -> Result<(), OpenAiFault> {
        let choice = &mut self.choices[event.choice];
        match event.kind {
            TurnEventKind::Queued { .. }
            | TurnEventKind::Loading { .. }
            | TurnEventKind::Prefill { .. }
            | TurnEventKind::Compacting { .. }
            | TurnEventKind::Compacted { .. }
            | TurnEventKind::Notice { .. } => {}
            TurnEventKind::Logprobs { tokens } => choice.pending.extend(tokens),
            TurnEventKind::ToolCall { call } => {
                if choice.calls.is_empty() || self.shape.is_parallel {
                    choice.calls.push(call_value(&call));
                }
            }
            TurnEventKind::Text { text, .. } => {
                if !text.is_empty() {
                    choice.logprobs.append(&mut choice.pending);
                }
                choice.text.push_str(&text);
            }
            TurnEventKind::Reasoning { text, .. } => {
                choice.pending.clear();
                choice.reasoning.push_str(&text);
            }
            TurnEventKind::Revised { text, reasoning } => {
                choice.logprobs.clear();
                (choice.text, choice.reasoning) = (text, reasoning);
            }
            TurnEventKind::Done { stats } => choice.stats = Some(stats),
            TurnEventKind::Failed { error } => return Err(fault_of_turn(&error)),
        }
        Ok(())
    }

    /// Choices that haven't ended.
    pub fn n_open(&self) -> usize {
        self.choices.iter().filter(|choice| choice.stats.is_none()).count()
    }

    /// The completion.
    ///
    /// Errors: a choice hasn't ended.
    pub fn into_value(self, identity: &Identity) -> Result<Value, OpenAiFault> {
        let stats: Option<Vec<&TurnStats>> =
            self.choices.iter().map(|choice| choice.stats.as_ref()).collect();
        let stats = stats.filter(|stats| !stats.is_empty());
        let stats = stats.ok_or_else(|| OpenAiFault::from(Error::bug("an answer ended without an end")))?;
        let (usage, timings) = (usage(&stats, stats.len()), timings(stats[0]));
        let choices: Vec<Value> =
            self.choices.iter().enumerate().map(|(index, choice)| choice.value(index, self.shape)).collect();
        let Identity { id, created, model } = identity;
        Ok(json!({
            "id": id, "object": "chat.completion", "created": created, "model": model,
            "system_fingerprint": FINGERPRINT, "choices": choices, "usage": usage, "timings": timings,
        }))
    }
}

impl CollectedChoice {
    fn value(&self, index: usize, shape: AnswerShape) -> Value {
        let mut message = json!({ "role": "assistant", "content": self.text, "refusal": null });
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = self.reasoning.clone().into();
        }
        if let Some(first) = self.calls.first() {
            if self.text.is_empty() {
                message["content"] = Value::Null;
            }
            match shape.is_legacy {
                true => message["function_call"] = first["function"].clone(),
                false => message["tool_calls"] = self.calls.clone().into(),
            }
        }
        let logprobs = match shape.has_logprobs {
            true => json!({ "content": logprobs_value(&self.logprobs), "refusal": null }),
            false => Value::Null,
        };
        let finish = self.stats.as_ref().map(|stats| reason(stats, shape));
        json!({ "index": index, "message": message, "logprobs": logprobs, "finish_reason": finish })
    }
}

#[cfg(test)]
mod tests {
    use contract::types::{Finish, TokenShare, ToolCall};

    use super::*;
    use crate::openai::answer_values::tests::stats;

    const PARALLEL: AnswerShape = AnswerShape {
        include_usage: false,
        has_progress: false,
        has_chunk_timings: false,
        is_verbose: false,
        has_logprobs: false,
        is_legacy: false,
        is_parallel: true,
    };

    fn identity() -> Identity {
        Identity { id: "x".into(), created: 1, model: "m".into() }
    }

    fn events() -> Vec<TurnEventKind> {
        let call =
            |id: &str| ToolCall { id: id.into(), name: "look".into(), arguments: "{}".into(), run: None };
        vec![
            TurnEventKind::Reasoning { text: "Hm.".into(), ids: vec![1] },
            TurnEventKind::ToolCall { call: call("a") },
            TurnEventKind::ToolCall { call: call("b") },
            TurnEventKind::Done { stats: stats(Finish::ToolCalls) },
        ]
    }

    fn whole(shape: AnswerShape, events: Vec<TurnEventKind>) -> Value {
        let mut whole = CompletionBuilder::new(shape, 1);
        events.into_iter().for_each(|kind| whole.take(ChoiceEvent { choice: 0, kind }).unwrap());
        whole.into_value(&identity()).unwrap()
    }

    fn chunks(text: &str) -> Vec<Value> {
        let data = text.split("\n\n").filter_map(|it| it.strip_prefix("data: "));
        data.filter(|it| *it != "[DONE]").map(|it| serde_json::from_str(it).unwrap()).collect()
    }

    fn streamed(shape: AnswerShape, events: Vec<ChoiceEvent>, n_choices: usize) -> Vec<Value> {
        let mut writer = StreamWriter::new(identity(), shape, n_choices);
        let text: String = events.into_iter().map(|event| writer.write(event)).collect();
        chunks(&text)
    }

    fn first(kind: TurnEventKind) -> ChoiceEvent {
        ChoiceEvent { choice: 0, kind }
    }

    fn text(text: &str) -> TurnEventKind {
        TurnEventKind::Text { text: text.into(), ids: Vec::new() }
    }

    #[test]
    fn text_that_was_reasoning_is_told_apart_afterwards() {
        let revised = || TurnEventKind::Revised { text: String::new(), reasoning: "Hm.".into() };
        let done = TurnEventKind::Done { stats: stats(Finish::Stop) };
        let whole = whole(PARALLEL, vec![text("Hm."), revised(), text("Yes."), done]);
        let message = &whole["choices"][0]["message"];
        assert_eq!((&message["content"], &message["reasoning_content"]), (&json!("Yes."), &json!("Hm.")));
        let chunks = streamed(PARALLEL, vec![first(revised())], 1);
        assert!(chunks[0].to_string().contains("</think>"), "what was sent can't be taken back");
    }

    #[test]
    fn calls_come_whole_and_in_pieces() {
        let whole = whole(PARALLEL, events());
        let choice = &whole["choices"][0];
        assert_eq!(
            (&choice["finish_reason"], &choice["message"]["content"]),
            (&json!("tool_calls"), &Value::Null)
        );
        assert_eq!(choice["message"]["reasoning_content"], "Hm.");
        let function = json!({ "name": "look", "arguments": "{}" });
        let first_call = json!({ "id": "a", "type": "function", "function": function });
        assert_eq!(
            (&choice["message"]["tool_calls"][0], choice["message"]["tool_calls"].as_array().map(Vec::len)),
            (&first_call, Some(2))
        );
        let chunks = streamed(PARALLEL, events().into_iter().map(first).collect(), 1);
        let deltas: Vec<&Value> =
            chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"][0]).collect();
        assert_eq!(
            (&deltas[1]["index"], &deltas[2]["index"], &deltas[2]["id"]),
            (&json!(0), &json!(1), &json!("b"))
        );
        assert_eq!(chunks[3]["choices"][0]["finish_reason"], "tool_calls");
    }

    #[test]
    fn clients_get_one_call_if_they_want_one() {
        let legacy = AnswerShape { is_legacy: true, is_parallel: false, ..PARALLEL };
        let choice = whole(legacy, events())["choices"][0].clone();
        assert_eq!(choice["finish_reason"], "function_call");
        assert_eq!(choice["message"]["function_call"], json!({ "name": "look", "arguments": "{}" }));
        assert!(choice["message"].get("tool_calls").is_none());
        let chunks = streamed(legacy, events().into_iter().map(first).collect(), 1);
        assert_eq!(chunks.len(), 3, "{chunks:?}");
        assert_eq!(chunks[1]["choices"][0]["delta"]["function_call"]["name"], "look");
        let single = AnswerShape { is_parallel: false, ..PARALLEL };
        let calls = whole(single, events())["choices"][0]["message"]["tool_calls"].clone();
        assert_eq!(calls.as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn probabilities_go_with_their_text() {
        let shape = AnswerShape { has_logprobs: true, ..PARALLEL };
        let token = |text: &str| TokenAlternatives {
            token: TokenShare {
                id: 1,
                text: text.into(),
                probability: 0.5,
                logprob: -0.7,
                bytes: Vec::new(),
            },
            others: Vec::new(),
        };
        let logprobs = |text: &str| TurnEventKind::Logprobs { tokens: vec![token(text)] };
        let reasoning = TurnEventKind::Reasoning { text: "Hm.".into(), ids: Vec::new() };
        let done = TurnEventKind::Done { stats: stats(Finish::Stop) };
        // half a character has no text yet, and the end token none at all
        let events = vec![
            logprobs("Hm."),
            reasoning,
            logprobs("\u{fffd}"),
            text(""),
            logprobs("b"),
            text("äb"),
            logprobs("</s>"),
            done,
        ];
        let content = whole(shape, events.clone())["choices"][0]["logprobs"]["content"].clone();
        let tokens: Vec<_> =
            content.as_array().unwrap().iter().map(|it| it["token"].as_str().unwrap()).collect();
        assert_eq!(tokens, ["\u{fffd}", "b"]);
        let chunks = streamed(shape, events.into_iter().map(first).collect(), 1);
        assert_eq!(chunks.len(), 3, "{chunks:?}");
        assert_eq!(chunks[1]["choices"][0]["logprobs"]["content"], content);
        assert!(chunks[2]["choices"][0]["logprobs"].is_null());
    }

    #[test]
    fn choices_end_apart_and_are_counted_together() {
        let shape = AnswerShape { include_usage: true, ..PARALLEL };
        let done = |choice| ChoiceEvent { choice, kind: TurnEventKind::Done { stats: stats(Finish::Stop) } };
        let mut writer = StreamWriter::new(identity(), shape, 2);
        let roles = chunks(&writer.begin());
        assert_eq!((roles.len(), &roles[1]["choices"][0]["index"]), (2, &json!(1)));
        assert_eq!(chunks(&writer.write(done(1))).len(), 1);
        let last = chunks(&writer.write(done(0)));
        assert_eq!((last.len(), &last[0]["choices"][0]["index"]), (2, &json!(0)));
        assert_eq!(
            (&last[1]["usage"]["completion_tokens"], &last[1]["usage"]["prompt_tokens"]),
            (&json!(4), &json!(3))
        );
        assert!(writer.end().contains("[DONE]"));
    }

    #[test]
    fn progress_begins_with_what_was_cached() {
        let shape = AnswerShape { has_progress: true, ..PARALLEL };
        let prefill = |done| first(TurnEventKind::Prefill { done, total: 9 });
        let chunks = streamed(shape, vec![prefill(2), prefill(9)], 1);
        assert_eq!(chunks[0]["prompt_progress"], json!({ "total": 9, "cache": 2, "processed": 2 }));
        assert_eq!(chunks[1]["prompt_progress"], json!({ "total": 9, "cache": 2, "processed": 9 }));
        assert_eq!(streamed(PARALLEL, vec![prefill(2)], 1).len(), 0);
    }
}
