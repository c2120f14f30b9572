//! Tool calls of an answer, put together from the fragments that servers send: with and without
//! index or id, with repeated names, whole or in pieces, new or legacy.

use std::collections::HashSet;

use documents::lenient_json::{self, SurrogateJoiner};
use serde_json::Value;

use super::answer_piece::{Call, Wrong};

/// Most calls of one answer, and the longest arguments of one.
const MAX_CALLS: usize = 128;
const MAX_ARGUMENT_BYTES: usize = 1 << 20;

/// The calls so far, in the order in which they began.
#[derive(Debug, Default)]
pub struct CallFragments {
    calls: Vec<OpenCall>,
    /// The call that the last fragment belonged to.
    last: usize,
    /// Calls before the last event that began any: unnamed fragments count from here.
    n_before: usize,
    /// Calls came as `tool_calls`: `function_call` beside them repeats them.
    is_list: bool,
}

#[derive(Debug, Default)]
struct OpenCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    pairs: SurrogateJoiner,
    extra: Option<Value>,
}

/// What one fragment says.
struct CallFragment<'a> {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: Option<&'a Value>,
    extra: Option<&'a Value>,
}

impl CallFragments {
    /// Takes the `tool_calls` and `function_call` of a piece of an answer. `is_message`: it is a
    /// whole message, which may repeat what has come before.
    pub fn take(&mut self, words: &Value, is_message: bool, has_lone: bool) -> Result<(), Wrong> {
        let mut fragments = fragments_of(words.get("tool_calls"));
        self.is_list |= !fragments.is_empty();
        if !self.is_list {
            fragments = fragments_of(words.get("function_call"));
        }
        let n_before = self.calls.len();
        let repeats = is_message && fragments.len() == n_before;
        for (at, fragment) in fragments.iter().enumerate() {
            let place = match fragment.index {
                _ if repeats && self.calls[at].name == fragment.name => Some(at),
                _ => self.place(fragment, at, fragments.len()),
            };
            let place = place.unwrap_or_else(|| {
                self.calls.push(OpenCall { index: fragment.index, ..OpenCall::default() });
                self.calls.len() - 1
            });
            self.last = place;
            self.calls[place].add(fragment, has_lone);
            if self.calls.len() > MAX_CALLS || self.calls[place].arguments.len() > MAX_ARGUMENT_BYTES {
                return Err(Wrong::TooLong);
            }
        }
        if self.calls.len() > n_before {
            self.n_before = n_before;
        }
        Ok(())
    }

    /// Whether there is a call, and the last one can be made as it is.
    pub fn are_whole(&self) -> bool {
        self.calls.last().is_some_and(|call| !call.name.is_empty() && call.is_whole())
    }

    /// Ends the answer: its calls, each with a distinct id. Those without a name are none.
    pub fn end(&mut self) -> Vec<Call> {
        let calls = std::mem::take(&mut self.calls).into_iter().filter(|call| !call.name.is_empty());
        let mut calls: Vec<Call> = calls.map(OpenCall::end).collect();
        let mut ids = HashSet::new();
        for (n, call) in calls.iter_mut().enumerate() {
            let mut next = n;
            while call.id.is_empty() || ids.contains(&call.id) {
                call.id = format!("call_{next}");
                next += 1;
            }
            ids.insert(call.id.clone());
        }
        calls
    }

    /// The call that a fragment belongs to. None: it begins another.
    fn place(&self, fragment: &CallFragment<'_>, at: usize, n_fragments: usize) -> Option<usize> {
        let last = self.calls.get(self.last).map(|_| self.last);
        if !fragment.id.is_empty() {
            let is_same = |call: &OpenCall| {
                call.id == fragment.id
                    && (call.index.is_none() || fragment.index.is_none() || call.index == fragment.index)
            };
            if let Some(known) = self.calls.iter().rposition(is_same) {
                return Some(known).filter(|&known| !self.calls[known].is_followed_by(fragment));
            }
        }
        let by_index =
            fragment.index.and_then(|index| self.calls.iter().rposition(|call| call.index == Some(index)));
        if let Some(known) = by_index {
            return Some(known).filter(|&known| !self.calls[known].is_followed_by(fragment));
        }
        let is_unnamed = fragment.name.is_empty() && fragment.id.is_empty();
        if fragment.index.is_some() {
            // Some count their fragments instead of their calls.
            return last.filter(|&last| is_unnamed && !self.calls[last].is_whole());
        }
        if is_unnamed && n_fragments > 1 {
            return Some(self.n_before + at).filter(|&at| at < self.calls.len());
        }
        last.filter(|&last| at == 0 && !self.calls[last].is_followed_by(fragment))
    }
}

impl OpenCall {
    /// Whether a fragment that seems to be of this call begins another.
    fn is_followed_by(&self, fragment: &CallFragment<'_>) -> bool {
        if fragment.name.is_empty() || self.name.is_empty() {
            return false;
        }
        let is_other_id = !fragment.id.is_empty() && !self.id.is_empty() && fragment.id != self.id;
        let is_unmarked = fragment.id.is_empty() && fragment.index.is_none();
        let is_other_name = !self.name.starts_with(&fragment.name) && !fragment.name.starts_with(&self.name);
        if self.arguments.trim().is_empty() {
            // Without arguments so far, only another name tells them apart.
            return (is_other_id || is_unmarked) && is_other_name;
        }
        let is_repeated = match fragment.arguments {
            Some(Value::String(text)) => text.trim().is_empty() || text.starts_with(&self.arguments),
            Some(object @ Value::Object(_)) => {
                lenient_json::parse_object(&self.arguments).as_ref() == Some(object)
            }
            _ => true,
        };
        let may_be_other = is_other_id || is_other_name || !is_repeated;
        self.is_whole() && may_be_other && (is_other_id || fragment.id.is_empty() || !is_repeated)
    }

    /// Whether its arguments are an object.
    fn is_whole(&self) -> bool {
        let text = self.arguments.trim();
        text.starts_with('{') && text.ends_with('}') && lenient_json::parse_object(text).is_some()
    }

    fn add(&mut self, fragment: &CallFragment<'_>, has_lone: bool) {
        if self.index.is_none() {
            self.index = fragment.index;
        }
        if let Some(extra) = fragment.extra {
            self.extra = Some(extra.clone());
        }
        if self.id.is_empty() {
            self.id.clone_from(&fragment.id);
        }
        if fragment.name.starts_with(&self.name) {
            // The first fragment, or the name again, as far as it has come.
            if !fragment.name.is_empty() {
                self.name.clone_from(&fragment.name);
            }
        } else if self.arguments.is_empty() && !self.name.ends_with(&fragment.name) {
            self.name.push_str(&fragment.name);
        }
        match fragment.arguments {
            Some(Value::String(text)) => {
                let text = self.pairs.join(text, has_lone);
                // Some repeat all that has come, and some begin with a placeholder.
                let begins = text.trim_start().starts_with('{');
                let is_all = !self.arguments.trim().is_empty() && text.starts_with(&self.arguments);
                if begins && (is_all || self.is_whole()) {
                    self.arguments = text;
                } else {
                    self.arguments.push_str(&text);
                }
            }
            Some(object @ Value::Object(map)) if !map.is_empty() || self.arguments.is_empty() => {
                self.arguments = lenient_json::without_stand_ins(&object.to_string());
            }
            Some(_) | None => {}
        }
    }

    fn end(mut self) -> Call {
        self.arguments.push_str(self.pairs.rest());
        let Self { id, name, arguments, extra, .. } = self;
        Call { id, name, arguments: object_text(arguments), extra }
    }
}

/// Arguments as the text of an object, as far as they can be mended. Nothing stays nothing.
fn object_text(arguments: String) -> String {
    let text = arguments.trim();
    if text.is_empty() || text == "null" {
        return String::new();
    }
    if serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object()) {
        return arguments;
    }
    let Ok(parsed) = lenient_json::parse(text) else { return arguments };
    let object = parsed.values.iter().rev().find_map(|value| match value {
        Value::Object(_) => Some(value.clone()),
        Value::String(inner) => lenient_json::parse_object(inner),
        _ => None,
    });
    object.map_or(arguments, |object| lenient_json::without_stand_ins(&object.to_string()))
}

/// The fragments of a field: a list, one object, or objects by their index.
fn fragments_of(field: Option<&Value>) -> Vec<CallFragment<'_>> {
    let items: Vec<&Value> = match field {
        Some(Value::Array(items)) => items.iter().collect(),
        Some(Value::Object(map)) if map.contains_key("function") || map.contains_key("name") => {
            field.into_iter().collect()
        }
        Some(Value::Object(map)) if map.contains_key("arguments") => field.into_iter().collect(),
        Some(Value::Object(map)) => map.values().collect(),
        Some(_) | None => Vec::new(),
    };
    items.into_iter().filter(|item| item.is_object()).map(fragment).collect()
}

fn fragment(item: &Value) -> CallFragment<'_> {
    let function = item.get("function").filter(|function| function.is_object()).unwrap_or(item);
    let text = |value: Option<&Value>| match value {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        Some(_) | None => String::new(),
    };
    let index = item.get("index");
    let index = index.and_then(Value::as_u64).or_else(|| index?.as_str()?.trim().parse().ok());
    let keys = ["arguments", "parameters", "input", "args"];
    let arguments = keys.iter().find_map(|key| function.get(*key).filter(|value| !value.is_null()));
    let extra = item.get("extra_content").filter(|extra| extra.is_object());
    CallFragment { index, id: text(item.get("id")), name: text(function.get("name")), arguments, extra }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Each event's fragments, and the calls that come of them as `id name arguments`.
    fn check(events: &[Value], expected: &[&str]) {
        let mut calls = CallFragments::default();
        for event in events {
            calls.take(&json!({ "tool_calls": event }), false, false).unwrap();
        }
        let told = |call: Call| format!("{} {} {}", call.id, call.name, call.arguments);
        let got: Vec<String> = calls.end().into_iter().map(told).collect();
        assert_eq!(got, expected, "{events:?}");
    }

    fn f(index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
        json!({ "index": index, "id": id, "function": { "name": name, "arguments": arguments } })
    }

    #[test]
    fn fragments_find_their_call() {
        let (a, b) = (Some("a"), Some("b"));
        let add = Some("add");
        let one = ["a add {\"x\":1}"];
        check(&[json!([f(Some(0), a, add, "{\"x\"")]), json!([f(Some(0), None, None, ":1}")])], &one);
        check(&[json!([f(Some(0), a, add, "{\"x\"")]), json!([f(Some(0), Some(""), Some(""), ":1}")])], &one);
        check(&[json!([f(Some(0), a, add, "{\"x\"")]), json!([f(Some(0), a, add, ":1}")])], &one);
        check(&[json!([f(Some(0), a, add, "{\"x\"")]), json!([f(Some(0), None, add, ":1}")])], &one);
        check(&[json!([f(None, a, add, "{\"x\"")]), json!([f(None, None, None, ":1}")])], &one);
        check(&[json!([f(None, a, add, "{\"x\"")]), json!([f(None, a, None, ":1}")])], &one);
        check(&[json!([f(None, a, add, "")]), json!([f(None, None, add, "{\"x\":1}")])], &one);
        // Another id in each fragment.
        check(&[json!([f(Some(0), a, add, "{\"x\"")]), json!([f(Some(0), b, None, ":1}")])], &one);
        check(&[json!([f(Some(0), a, add, "{\"x\"")]), json!([f(Some(0), b, add, ":1}")])], &one);
        // The index counts fragments; the name comes in pieces, or grows; the id comes late.
        check(&[json!([f(Some(0), a, add, "{\"x\"")]), json!([f(Some(1), None, None, ":1}")])], &one);
        check(
            &[json!([f(Some(0), a, Some("a"), "")]), json!([f(Some(0), None, Some("dd"), "{\"x\":1}")])],
            &one,
        );
        check(&[json!([f(Some(0), a, Some("ad"), "")]), json!([f(Some(0), a, add, "{\"x\":1}")])], &one);
        check(&[json!([f(Some(0), None, add, "{\"x\"")]), json!([f(Some(0), a, None, ":1}")])], &one);
        // All that has come is repeated; a placeholder comes first; the whole call comes again.
        check(&[json!([f(Some(0), a, add, "{\"x\"")]), json!([f(Some(0), a, add, "{\"x\":1}")])], &one);
        check(&[json!([f(Some(0), a, add, "{}")]), json!([f(Some(0), None, None, "{\"x\":1}")])], &one);
        check(&[json!([f(Some(0), a, add, "{\"x\":1}")]), json!([f(Some(0), a, add, "{\"x\":1}")])], &one);
    }

    #[test]
    fn several_calls_stay_apart() {
        let (a, b) = (Some("a"), Some("b"));
        let add = Some("add");
        let two = ["a add {\"x\":1}", "b add {\"x\":2}"];
        let unnamed = ["call_0 add {\"x\":1}", "call_1 add {\"x\":2}"];
        let whole = |index, id, n: u32| f(index, id, add, &format!("{{\"x\":{n}}}"));
        check(&[json!([whole(Some(0), a, 1), whole(Some(1), b, 2)])], &two);
        check(&[json!([whole(Some(0), a, 1)]), json!([whole(Some(0), b, 2)])], &two);
        check(&[json!([whole(Some(0), a, 1), whole(Some(0), b, 2)])], &two);
        check(&[json!([whole(None, a, 1)]), json!([whole(None, b, 2)])], &two);
        check(&[json!([whole(None, None, 1), whole(None, None, 2)])], &unnamed);
        check(&[json!([whole(None, None, 1)]), json!([whole(None, None, 2)])], &unnamed);
        check(&[json!([whole(Some(0), None, 1)]), json!([whole(Some(0), None, 2)])], &unnamed);
        // One id for both.
        check(
            &[json!([whole(Some(0), a, 1), whole(Some(1), a, 2)])],
            &["a add {\"x\":1}", "call_1 add {\"x\":2}"],
        );
        // In pieces side by side: by index, by id, by their place.
        let begun = json!([f(Some(0), a, add, "{\"x\":"), f(Some(1), b, add, "{\"x\":")]);
        check(&[begun, json!([f(Some(1), None, None, "2}")]), json!([f(Some(0), None, None, "1}")])], &two);
        let begun = json!([f(None, a, add, "{\"x\":"), f(None, b, add, "{\"x\":")]);
        check(&[begun.clone(), json!([f(None, b, None, "2}")]), json!([f(None, a, None, "1}")])], &two);
        check(&[begun, json!([f(None, None, None, "1}"), f(None, None, None, "2}")])], &two);
        // Ollama's index with other ids, in pieces.
        check(
            &[
                json!([f(Some(0), a, add, "{\"x\":")]),
                json!([f(Some(0), None, None, "1}")]),
                json!([f(Some(0), b, add, "{\"x\":")]),
                json!([f(Some(0), None, None, "2}")]),
            ],
            &two,
        );
        check(
            &[json!([f(None, None, Some("f"), "")]), json!([f(None, None, Some("g"), "")])],
            &["call_0 f ", "call_1 g "],
        );
    }

    #[test]
    fn other_forms_are_read() {
        let one = ["call_0 add {\"x\":1}"];
        let object = json!({ "x": 1 });
        check(&[json!([{ "function": { "name": "add", "arguments": object } }])], &one);
        check(&[json!({ "function": { "name": "add", "arguments": "{\"x\":1}" } })], &one);
        check(&[json!([{ "name": "add", "parameters": object }])], &one);
        check(&[json!({ "0": { "function": { "name": "add", "arguments": "{\"x\":1}" } } })], &one);
        check(
            &[json!([{ "index": "0", "id": 7, "function": { "name": "add", "arguments": "{\"x\":1}" } }])],
            &["7 add {\"x\":1}"],
        );
        check(&[json!([f(None, None, Some("add"), "\"{\\\"x\\\":1}\"")])], &one);
        check(&[json!([f(None, None, Some("add"), "{\"x\":NaN}")])], &["call_0 add {\"x\":null}"]);
        check(&[json!([f(None, None, Some("add"), "null")])], &["call_0 add "]);
        check(&[json!([f(Some(0), None, None, "{\"x\":1}"), 7, null])], &[]);
        check(&[json!(null), json!([])], &[]);
        let mut calls = CallFragments::default();
        let take = |calls: &mut CallFragments, words: Value| calls.take(&words, false, false).unwrap();
        take(&mut calls, json!({ "function_call": { "name": "add", "arguments": "" } }));
        take(&mut calls, json!({ "function_call": { "arguments": "{\"x\"" }, "tool_calls": null }));
        assert!(!calls.are_whole());
        take(&mut calls, json!({ "function_call": { "name": null, "arguments": ":1}" } }));
        assert!(calls.are_whole());
        let arguments = "{\"x\":1}".to_owned();
        assert_eq!(calls.end(), [Call { id: "call_0".into(), name: "add".into(), arguments, extra: None }]);
        let both = json!({ "function_call": { "name": "add" }, "tool_calls": [f(None, Some("a"), Some("add"), "{}")] });
        take(&mut calls, both);
        assert_eq!(calls.end().len(), 1);
        // A message at the end repeats the calls.
        take(&mut calls, json!({ "tool_calls": [f(Some(0), Some("a"), Some("add"), "{\"x\":1}")] }));
        let message = json!({ "tool_calls": [f(None, Some("b"), Some("add"), "{\"x\":1}")] });
        calls.take(&message, true, false).unwrap();
        assert_eq!(calls.end().len(), 1);
    }

    #[test]
    fn calls_are_bounded() {
        let many: Vec<_> = (0..200).map(|n| f(Some(n), None, Some("f"), "")).collect();
        let mut calls = CallFragments::default();
        assert_eq!(calls.take(&json!({ "tool_calls": many }), false, false), Err(Wrong::TooLong));
        let long = json!({ "tool_calls": [f(None, None, Some("f"), &"x".repeat(1 << 20))] });
        let mut calls = CallFragments::default();
        calls.take(&long, false, false).unwrap();
        assert_eq!(calls.take(&long, false, false), Err(Wrong::TooLong));
    }
}
