//! Writes a response while its turn runs: its items, and the events of a stream in OpenAI's order.

use contract::types::{ErrorInfo, Finish, TokenAlternatives, ToolCall, TurnEventKind, TurnStats};
use serde_json::{Map, Value, json};

use super::request::ResponseShape;
use crate::fault::OpenAiFault;
use crate::openai::answer_values::{Identity, fault_of_turn, logprobs_value, timings};
use crate::openai::running_timings::AnswerClock;
use crate::openai::{new_id, now_s};

/// A response in progress.
pub struct ResponseWriter {
    /// The response without its output.
    response: Value,
    output: Vec<Value>,
    open: Option<OpenItem>,
    shape: ResponseShape,
    /// Number of the next event.
    sequence: u64,
    /// Of the text that follows.
    logprobs: Vec<TokenAlternatives>,
    n_calls: usize,
    n_reasoning_tokens: usize,
    /// Reasoning that had been taken for text.
    late_reasoning: String,
    n_cached: Option<u32>,
    /// Where deltas have times.
    clock: Option<AnswerClock>,
    fault: Option<OpenAiFault>,
    is_over: bool,
}

/// The item that is being written.
struct OpenItem {
    id: String,
    text: String,
    is_reasoning: bool,
    logprobs: Vec<Value>,
}

impl ResponseWriter {
    pub fn new(identity: &Identity, echo: Map<String, Value>, shape: ResponseShape) -> Self {
        let mut response = json!({
            "id": identity.id, "object": "response", "created_at": identity.created, "status": "in_progress",
            "completed_at": null, "error": null, "incomplete_details": null, "model": identity.model,
            "output": [], "usage": null,
        });
        for (name, value) in echo {
            response[name] = value;
        }
        Self {
            response,
            output: Vec::new(),
            open: None,
            shape,
            sequence: 0,
            logprobs: Vec::new(),
            n_calls: 0,
            n_reasoning_tokens: 0,
            late_reasoning: String::new(),
            n_cached: None,
            clock: shape.has_delta_timings.then(AnswerClock::start),
            fault: None,
            is_over: false,
        }
    }

    /// Sets the status of a response that has not ended.
    pub fn set_status(&mut self, status: &str) {
        self.response["status"] = json!(status);
    }

    /// The response so far.
    pub fn snapshot(&self) -> Value {
        let mut response = self.response.clone();
        let open = self.open.as_ref().map(|open| open.item("in_progress"));
        response["output"] = self.output.iter().cloned().chain(open).collect();
        response
    }

    /// Whether the last event was written.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Why it failed.
    pub fn fault(&self) -> Option<&OpenAiFault> {
        self.fault.as_ref()
    }

    /// The first events.
    pub fn begin(&mut self) -> Vec<Value> {
        let response = self.snapshot();
        let created = self.event("response.created", json!({ "response": response }));
        self.set_status("in_progress");
        let response = self.snapshot();
        vec![created, self.event("response.in_progress", json!({ "response": response }))]
    }

    /// The events that follow from one of the turn.
    pub fn write(&mut self, kind: TurnEventKind) -> Vec<Value> {
        match kind {
            TurnEventKind::Queued { .. }
            | TurnEventKind::Loading { .. }
            | TurnEventKind::Compacting { .. }
            | TurnEventKind::Compacted { .. }
            | TurnEventKind::Notice { .. } => Vec::new(),
            TurnEventKind::Prefill { done, total } => {
                if let Some(clock) = &mut self.clock {
                    clock.note_prompt(done, total);
                }
                self.progress(done, total)
            }
            TurnEventKind::Logprobs { tokens } => {
                self.logprobs.extend(tokens);
                Vec::new()
            }
            TurnEventKind::Text { text, .. } if text.is_empty() => Vec::new(),
            TurnEventKind::Text { text, ids } => self.text(&text, ids.len()),
            TurnEventKind::Reasoning { text, ids } => {
                self.n_reasoning_tokens += ids.len();
                self.logprobs.clear();
                if text.is_empty() { Vec::new() } else { self.reasoning(&text) }
            }
            TurnEventKind::Revised { text, reasoning } => {
                self.revise(text, reasoning);
                Vec::new()
            }
            TurnEventKind::ToolCall { call } => self.call(&call),
            TurnEventKind::Done { stats } => self.done(&stats),
            TurnEventKind::Failed { error } => self.failed(&error),
        }
    }

    fn event(&mut self, kind: &str, mut fields: Value) -> Value {
        fields["type"] = json!(kind);
        fields["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        fields
    }

    fn progress(&mut self, done: u32, total: u32) -> Vec<Value> {
        if !self.shape.has_progress {
            return Vec::new();
        }
        let cache = *self.n_cached.get_or_insert(done);
        let response = self.snapshot();
        let progress = json!({ "total": total, "cache": cache, "processed": done });
        vec![self.event("response.in_progress", json!({ "response": response, "prompt_progress": progress }))]
    }

    /// Opens an item of the wanted kind, unless it is open.
    fn open(&mut self, is_reasoning: bool) -> Vec<Value> {
        if self.open.as_ref().is_some_and(|open| open.is_reasoning == is_reasoning) {
            return Vec::new();
        }
        let mut events = self.close("completed");
        let id = new_id(if is_reasoning { "rs" } else { "msg" });
        let open = OpenItem { id: id.clone(), text: String::new(), is_reasoning, logprobs: Vec::new() };
        let mut item = open.item("in_progress");
        item["content"] = json!([]);
        let index = self.output.len();
        events.push(self.event("response.output_item.added", json!({ "output_index": index, "item": item })));
        let part = json!({ "item_id": id, "output_index": index, "content_index": 0, "part": open.part() });
        events.push(self.event("response.content_part.added", part));
        self.open = Some(open);
        events
    }

    fn text(&mut self, text: &str, n_tokens: usize) -> Vec<Value> {
        let mut events = self.open(false);
        let timings = self.clock.as_mut().map(|clock| clock.note_tokens(n_tokens));
        let logprobs = match self.shape.has_logprobs {
            true => logprobs_value(&std::mem::take(&mut self.logprobs)),
            false => json!([]),
        };
        let index = self.output.len();
        let Some(open) = &mut self.open else { return events };
        open.text.push_str(text);
        open.logprobs.extend(logprobs.as_array().cloned().unwrap_or_default());
        let mut delta = json!({
            "item_id": open.id, "output_index": index, "content_index": 0, "delta": text, "logprobs": logprobs,
        });
        if let Some(timings) = timings {
            delta["timings"] = timings;
        }
        events.push(self.event("response.output_text.delta", delta));
        events
    }

    fn reasoning(&mut self, text: &str) -> Vec<Value> {
        let mut events = self.open(true);
        let index = self.output.len();
        let Some(open) = &mut self.open else { return events };
        open.text.push_str(text);
        let delta = json!({ "item_id": open.id, "output_index": index, "content_index": 0, "delta": text });
        events.push(self.event("response.reasoning_text.delta", delta));
        events
    }

    /// What was sent can't be taken back, but the items at the end are right.
    fn revise(&mut self, text: String, reasoning: String) {
        self.logprobs.clear();
        match &mut self.open {
            Some(open) if !open.is_reasoning => {
                open.text = text;
                open.logprobs.clear();
                self.late_reasoning = reasoning;
            }
            Some(open) => open.text = reasoning,
            None => self.late_reasoning = reasoning,
        }
    }

    /// Ends the open item.
    fn close(&mut self, status: &str) -> Vec<Value> {
        let Some(open) = self.open.take() else { return Vec::new() };
        let index = self.output.len();
        let place = json!({ "item_id": open.id, "output_index": index, "content_index": 0 });
        let mut done = place.clone();
        done["text"] = json!(open.text);
        let kind = match open.is_reasoning {
            true => "response.reasoning_text.done",
            false => {
                done["logprobs"] = json!(open.logprobs);
                "response.output_text.done"
            }
        };
        let mut part = place;
        part["part"] = open.part();
        let item = open.item(status);
        self.output.push(item.clone());
        vec![
            self.event(kind, done),
            self.event("response.content_part.done", part),
            self.event("response.output_item.done", json!({ "output_index": index, "item": item })),
        ]
    }

    fn call(&mut self, call: &ToolCall) -> Vec<Value> {
        self.n_calls += 1;
        if self.n_calls > 1 && !self.shape.is_parallel {
            return Vec::new();
        }
        let mut events = self.close("completed");
        let (id, index) = (new_id("fc"), self.output.len());
        let mut item = json!({
            "id": id, "type": "function_call", "status": "in_progress", "call_id": call.id, "name": call.name,
            "arguments": "",
        });
        events.push(self.event("response.output_item.added", json!({ "output_index": index, "item": item })));
        let delta = json!({ "item_id": id, "output_index": index, "delta": call.arguments });
        events.push(self.event("response.function_call_arguments.delta", delta));
        let done =
            json!({ "item_id": id, "output_index": index, "name": call.name, "arguments": call.arguments });
        events.push(self.event("response.function_call_arguments.done", done));
        let is_whole = serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok();
        item["status"] = json!(if is_whole { "completed" } else { "incomplete" });
        item["arguments"] = json!(call.arguments);
        self.output.push(item.clone());
        events.push(self.event("response.output_item.done", json!({ "output_index": index, "item": item })));
        events
    }

    fn done(&mut self, stats: &TurnStats) -> Vec<Value> {
        let (status, item_status, reason) = match stats.finish {
            Finish::Stop | Finish::ToolCalls => ("completed", "completed", None),
            Finish::Cancelled => ("cancelled", "incomplete", None),
            Finish::Length | Finish::ContextFull | Finish::TimeUp => {
                ("incomplete", "incomplete", Some("max_output_tokens"))
            }
        };
        let mut events = Vec::new();
        // An answer without a word is an empty message.
        if self.open.is_none() && self.output.iter().all(|item| item["type"] == "reasoning") {
            events.extend(self.open(false));
        }
        events.extend(self.close(item_status));
        let late = std::mem::take(&mut self.late_reasoning);
        if !late.is_empty() {
            events.extend(self.reasoning(&late));
            events.extend(self.close("completed"));
        }
        self.response["status"] = json!(status);
        self.response["completed_at"] = if status == "completed" { json!(now_s()) } else { Value::Null };
        self.response["incomplete_details"] =
            reason.map_or(Value::Null, |reason| json!({ "reason": reason }));
        self.response["usage"] = usage(stats, self.n_reasoning_tokens);
        self.is_over = true;
        let kind = if status == "completed" { "response.completed" } else { "response.incomplete" };
        let fields = json!({ "response": self.snapshot(), "timings": timings(stats) });
        events.push(self.event(kind, fields));
        events
    }

    fn failed(&mut self, error: &ErrorInfo) -> Vec<Value> {
        let fault = fault_of_turn(error);
        let code = match fault.status.as_u16() {
            429 => "rate_limit_exceeded",
            400..500 => "invalid_prompt",
            _ => "server_error",
        };
        let mut events = self.close("incomplete");
        self.response["status"] = json!("failed");
        self.response["error"] = json!({ "code": code, "message": fault.message });
        self.fault = Some(fault);
        self.is_over = true;
        let fields = json!({ "response": self.snapshot() });
        events.push(self.event("response.failed", fields));
        events
    }
}

impl OpenItem {
    fn part(&self) -> Value {
        match self.is_reasoning {
            true => json!({ "type": "reasoning_text", "text": self.text }),
            false => json!({
                "type": "output_text", "text": self.text, "annotations": [], "logprobs": self.logprobs,
            }),
        }
    }

    fn item(&self, status: &str) -> Value {
        match self.is_reasoning {
            true => json!({
                "id": self.id, "type": "reasoning", "status": status, "summary": [], "content": [self.part()],
            }),
            false => json!({
                "id": self.id, "type": "message", "status": status, "role": "assistant", "content": [self.part()],
            }),
        }
    }
}

/// Token counts of a response.
pub fn usage(stats: &TurnStats, n_reasoning_tokens: usize) -> Value {
    json!({
        "input_tokens": stats.prompt_tokens,
        "input_tokens_details": { "cached_tokens": stats.reused_tokens, "cache_write_tokens": 0 },
        "output_tokens": stats.generated_tokens,
        "output_tokens_details": { "reasoning_tokens": n_reasoning_tokens },
        "total_tokens": u64::from(stats.prompt_tokens) + u64::from(stats.generated_tokens),
    })
}

#[cfg(test)]
mod tests {
    use super::super::replay::replay;
    use super::*;
    use crate::openai::answer_values::tests::stats;

    fn writer() -> ResponseWriter {
        let identity = Identity { id: "resp_1".into(), created: 1, model: "m".into() };
        ResponseWriter::new(
            &identity,
            Map::new(),
            ResponseShape { is_parallel: true, ..ResponseShape::default() },
        )
    }

    fn text(text: &str) -> TurnEventKind {
        TurnEventKind::Text { text: text.into(), ids: Vec::new() }
    }

    fn reasoning(text: &str) -> TurnEventKind {
        TurnEventKind::Reasoning { text: text.into(), ids: vec![1, 2] }
    }

    fn call(id: &str) -> TurnEventKind {
        TurnEventKind::ToolCall {
            call: ToolCall { id: id.into(), name: "f".into(), arguments: "{}".into(), run: None },
        }
    }

    fn done(finish: Finish) -> TurnEventKind {
        TurnEventKind::Done { stats: stats(finish) }
    }

    /// All events of a response, checked for their numbers.
    fn events(writer: &mut ResponseWriter, kinds: Vec<TurnEventKind>) -> Vec<Value> {
        let mut events = writer.begin();
        for kind in kinds {
            events.extend(writer.write(kind));
        }
        let numbers: Vec<u64> = events.iter().map(|it| it["sequence_number"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
        assert!(writer.is_over());
        events
    }

    fn types(events: &[Value]) -> Vec<&str> {
        events.iter().map(|it| it["type"].as_str().unwrap().strip_prefix("response.").unwrap()).collect()
    }

    const MESSAGE: [&str; 2] = ["output_item.added", "content_part.added"];
    const MESSAGE_END: [&str; 3] = ["output_text.done", "content_part.done", "output_item.done"];

    #[test]
    fn events_come_in_openais_order() {
        let mut writer = writer();
        let kinds = vec![reasoning("Hm."), text("a"), text("b"), call("c1"), done(Finish::ToolCalls)];
        let all = events(&mut writer, kinds);
        let expected = [
            &["created", "in_progress"][..],
            &MESSAGE,
            &["reasoning_text.delta", "reasoning_text.done", "content_part.done", "output_item.done"],
            &MESSAGE,
            &["output_text.delta", "output_text.delta"],
            &MESSAGE_END,
            &[
                "output_item.added",
                "function_call_arguments.delta",
                "function_call_arguments.done",
                "output_item.done",
            ],
            &["completed"],
        ];
        assert_eq!(types(&all), expected.concat());
        let response = &all.last().unwrap()["response"];
        let kinds: Vec<_> =
            response["output"].as_array().unwrap().iter().map(|it| it["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["reasoning", "message", "function_call"]);
        assert_eq!(response["output"][1]["content"][0]["text"], "ab");
        assert_eq!(response["usage"]["output_tokens_details"]["reasoning_tokens"], 2);
        assert_eq!(*response, writer.snapshot());
        // ids of an item are the same in all its events
        let ids: Vec<&Value> =
            all[8..14].iter().map(|it| it.get("item_id").unwrap_or(&it["item"]["id"])).collect();
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        assert_eq!(replay(response).len(), all.len() - 1, "a stored text has one delta");
    }

    #[test]
    fn endings_have_their_status() {
        for (finish, status, kind) in [
            (Finish::Stop, "completed", "completed"),
            (Finish::Length, "incomplete", "incomplete"),
            (Finish::Cancelled, "cancelled", "incomplete"),
        ] {
            let mut writer = writer();
            let all = events(&mut writer, vec![text("a"), done(finish)]);
            assert_eq!(types(&all).last(), Some(&kind));
            assert_eq!(writer.snapshot()["status"], status);
            assert_eq!(types(&replay(&writer.snapshot())), types(&all));
        }
        let mut empty = writer();
        let all = events(&mut empty, vec![done(Finish::Stop)]);
        assert_eq!(
            types(&all),
            [&["created", "in_progress"][..], &MESSAGE, &MESSAGE_END, &["completed"]].concat()
        );
        let mut broken = writer();
        let info =
            ErrorInfo { code: "bug".into(), message: "Gone.".into(), remedy: String::new(), action: None };
        let all = events(&mut broken, vec![text("a"), TurnEventKind::Failed { error: info }]);
        assert_eq!(types(&all).last(), Some(&"failed"));
        assert_eq!(
            (&broken.snapshot()["error"]["code"], broken.fault().is_some()),
            (&json!("server_error"), true)
        );
    }

    #[test]
    fn text_that_was_reasoning_is_right_at_the_end() {
        let mut writer = writer();
        let revised = TurnEventKind::Revised { text: String::new(), reasoning: "Hm.".into() };
        events(&mut writer, vec![text("Hm."), revised, text("Yes."), done(Finish::Stop)]);
        let output = writer.snapshot()["output"].clone();
        assert_eq!(output[0]["content"][0]["text"], "Yes.");
        assert_eq!(
            (&output[1]["type"], &output[1]["content"][0]["text"]),
            (&json!("reasoning"), &json!("Hm."))
        );
    }

    #[test]
    fn a_call_that_was_cut_is_incomplete() {
        let mut writer = writer();
        let cut = ToolCall { id: "c".into(), name: "f".into(), arguments: "{\"x\": \"a".into(), run: None };
        let kinds = vec![call("a"), TurnEventKind::ToolCall { call: cut }, done(Finish::Length)];
        let all = events(&mut writer, kinds);
        assert_eq!(types(&all).last(), Some(&"incomplete"));
        let response = writer.snapshot();
        assert_eq!(response["incomplete_details"], json!({ "reason": "max_output_tokens" }));
        let statuses = [&response["output"][0]["status"], &response["output"][1]["status"]];
        assert_eq!(statuses, ["completed", "incomplete"]);
        assert_eq!(response["output"][1]["arguments"], "{\"x\": \"a");
        assert_eq!(types(&replay(&response)), types(&all));
    }

    #[test]
    fn one_call_where_one_is_wanted() {
        let mut writer = writer();
        writer.shape.is_parallel = false;
        events(&mut writer, vec![call("a"), call("b"), done(Finish::ToolCalls)]);
        assert_eq!(writer.snapshot()["output"].as_array().map(Vec::len), Some(1));
    }
}
