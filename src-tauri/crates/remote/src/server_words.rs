//! A server's own words for a failure, in whatever form they come. That is an `error` object, a flat
//! object, a list of rejected fields, JSON inside a string, plain text or a web page.

use secrets::Secret;
use serde_json::Value;

/// Longest part of a server's own words that is shown.
const MAX_WORDS: usize = 300;

/// Objects in objects in strings, as gateways wrap them.
const MAX_DEPTH: usize = 8;

/// Rejected fields that are named.
const MAX_ITEMS: usize = 5;

/// Where words are found, in this order.
const WORD_FIELDS: [&str; 14] = [
    "message",
    "error",
    "detail",
    "error_message",
    "error_msg",
    "errors",
    "msg",
    "error_description",
    "description",
    "reason",
    "title",
    "raw",
    "error_type",
    "type",
];

/// What a server said against a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedRequest {
    pub words: String,
    /// The field at fault, where the server names it apart.
    pub field: Option<String>,
}

/// A failure as a server tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerFailure {
    /// May be empty.
    pub words: String,
    /// A status of HTTP, if it names one.
    pub status: Option<u16>,
    /// As OpenAI names failures.
    pub code: Option<String>,
    /// The field of the request that is at fault.
    pub field: Option<String>,
    /// It stood under `error`, as the protocol has it.
    pub is_marked: bool,
}

impl ServerFailure {
    /// Finds the failure that an event tells. None: it is no failure.
    pub fn of_event(event: &Value) -> Option<Self> {
        let choice = event.get("choices").and_then(|choices| choices.get(0));
        let places =
            [event.get("error"), choice.and_then(|it| it.get("error")), event.pointer("/x_groq/error")];
        if let Some(error) = places.into_iter().flatten().find(|error| is_said(error)) {
            return Some(Self { is_marked: true, ..Self::of_body(error) });
        }
        let has_answer = choice.is_some() || is_said_in(event, "usage") || event["message"].is_object();
        (!has_answer && is_flat_failure(event)).then(|| Self::of_body(event))
    }

    /// Reads a body that is known to tell a failure.
    pub fn of_body(body: &Value) -> Self {
        let inner = match body {
            Value::Array(items) => items.first().unwrap_or(body),
            _ => body,
        };
        let error = inner.get("error").filter(|error| error.is_object()).unwrap_or(inner);
        let text = |key: &str| error.get(key).or(inner.get(key)).and_then(Value::as_str).map(str::to_owned);
        let mut words = words_of(body).unwrap_or_default();
        // Gateways name themselves, and put the words of the server behind them elsewhere.
        let raw = error.pointer("/metadata/raw").and_then(|raw| words_in(raw, 0));
        if let Some(raw) = raw.filter(|raw| !words.contains(raw.as_str())) {
            words = format!("{words}: {raw}");
        }
        Self {
            words,
            status: status_of(error).or_else(|| status_of(inner)),
            code: text("code"),
            field: text("param").filter(|field| !field.is_empty()),
            is_marked: false,
        }
    }

    /// Reads the bytes of a refusal: JSON, a web page or plain text.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_start_matches('\u{feff}').trim();
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Null) => Self::default(),
            Ok(value) => Self::of_body(&value),
            Err(_) if is_web_page(text) => {
                Self { words: title_of(text).unwrap_or_default(), ..Self::default() }
            }
            Err(_) => Self { words: text.to_owned(), ..Self::default() },
        }
    }
}

/// Returns the words in a value. None: there are none.
pub fn words_of(value: &Value) -> Option<String> {
    words_in(value, 0).or_else(|| is_said(value).then(|| value.to_string()))
}

fn words_in(value: &Value, depth: usize) -> Option<String> {
    if depth > MAX_DEPTH {
        return None;
    }
    match value {
        Value::String(text) => {
            let text = text.trim();
            let inner = text.starts_with(['{', '[']).then(|| serde_json::from_str::<Value>(text).ok());
            let inner = inner.flatten().and_then(|inner| words_in(&inner, depth + 1));
            inner.or_else(|| Some(text.to_owned())).filter(|text| !text.is_empty())
        }
        Value::Array(items) => {
            let words = items.iter().filter_map(|item| words_in(item, depth + 1)).take(MAX_ITEMS);
            Some(words.collect::<Vec<_>>().join("; ")).filter(|words| !words.is_empty())
        }
        Value::Object(fields) => {
            let words = WORD_FIELDS.iter().find_map(|key| words_in(fields.get(*key)?, depth + 1))?;
            // FastAPI names the field at fault beside what is wrong with it.
            match fields.get("loc").and_then(Value::as_array) {
                Some(place) => {
                    let text = |part: &Value| part.as_str().map_or_else(|| part.to_string(), str::to_owned);
                    let place: Vec<String> = place.iter().map(text).filter(|part| part != "body").collect();
                    Some(format!("{}: {words}", place.join(".")))
                }
                None => Some(words),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Whether an object without an answer tells a failure.
fn is_flat_failure(event: &Value) -> bool {
    let names = |key: &str| {
        event[key].as_str().is_some_and(|name| {
            let name = name.to_ascii_lowercase();
            name.ends_with("error") || name.ends_with("exception") || name == "failed"
        })
    };
    let is_named = ["object", "type", "status", "event"].iter().any(|key| names(key));
    let has_words = ["detail", "error_message", "error_msg", "errors", "error_type", "msg"]
        .iter()
        .any(|key| is_said_in(event, key));
    is_named || has_words || event["message"].is_string() && is_said_in(event, "message")
}

fn status_of(error: &Value) -> Option<u16> {
    let keys = ["code", "status", "status_code", "http_code", "http_status"];
    let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
    let found =
        keys.iter().find_map(|key| error.get(*key).and_then(number).filter(|n| (400..600).contains(n)));
    found.and_then(|status| u16::try_from(status).ok())
}

fn is_said_in(event: &Value, key: &str) -> bool {
    event.get(key).is_some_and(is_said)
}

/// Whether a value says anything: servers fill fields that mean nothing with `false` or `""`.
fn is_said(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is_set) => *is_set,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// How pages for people begin, in lower case.
const PAGE_STARTS: [&str; 10] =
    ["<!doctype", "<html", "<head", "<body", "<!--", "<script", "<title", "<?xml", "<center", "<h1"];

/// Whether a text is a page for people.
pub fn is_web_page(text: &str) -> bool {
    let start = lower_start(text);
    PAGE_STARTS.iter().any(|tag| start.starts_with(tag))
}

/// Whether a text that has only come in part may be the beginning of such a page.
pub fn may_be_web_page(text: &str) -> bool {
    let start = lower_start(text);
    PAGE_STARTS.iter().any(|tag| tag.starts_with(&start))
}

fn lower_start(text: &str) -> String {
    let start: String = text.trim_start_matches('\u{feff}').trim_start().chars().take(64).collect();
    start.to_ascii_lowercase()
}

/// Returns the title of a web page, or its first heading.
pub fn title_of(page: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase();
    ["title", "h1"].iter().find_map(|tag| {
        let begin = lower.find(&format!("<{tag}"))?;
        let begin = begin + lower[begin..].find('>')? + 1;
        let end = begin + lower[begin..].find(&format!("</{tag}"))?;
        let title = page.get(begin..end)?.split_whitespace().collect::<Vec<_>>().join(" ");
        (!title.is_empty() && !title.contains('<')).then_some(title)
    })
}

/// The server's words on one line, without the key that it may repeat.
pub fn quote(words: &str, key: Option<&Secret>) -> String {
    let hidden = match key {
        Some(key) if !key.reveal().is_empty() => words.replace(key.reveal(), "…"),
        Some(_) | None => words.to_owned(),
    };
    let line: String = hidden.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = line.chars().take(MAX_WORDS).collect();
    match short.is_empty() {
        true => ".".into(),
        false => format!(": \"{short}\""),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(body: &str, words: &str) {
        assert_eq!(ServerFailure::of_bytes(body.as_bytes()).words, words, "{body}");
    }

    #[test]
    fn words_are_found_in_every_form() {
        check(r#"{"error":{"message":"no","type":"x","code":5}}"#, "no");
        check(r#"{"error":"gone"}"#, "gone");
        check(r#"{"message":"bad"}"#, "bad");
        check(r#"{"detail":"Not Found"}"#, "Not Found");
        check(r#"{"object":"error","message":"CUDA out of memory","code":500}"#, "CUDA out of memory");
        check(r#"[{"error":{"code":400,"message":"Gemini says no"}}]"#, "Gemini says no");
        check(
            r#"{"detail":[{"type":"extra_forbidden","loc":["body","top_k"],"msg":"Extra inputs are not permitted"}]}"#,
            "top_k: Extra inputs are not permitted",
        );
        check(
            r#"{"object":"error","message":{"detail":[{"loc":["body","stream_options","include_usage"],"msg":"no"}]}}"#,
            "stream_options.include_usage: no",
        );
        check(r#"{"message":"{\"detail\":[{\"loc\":[\"body\",\"seed\"],\"msg\":\"no\"}]}"}"#, "seed: no");
        check(
            r#"{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"too hot\"}}"}}}"#,
            "Provider returned error: too hot",
        );
        check(r#"{"error_type":"BadRequest","error_message":"too long"}"#, "too long");
        check("some plain words", "some plain words");
        check("\u{feff} plain", "plain");
        check("<!doctype html><html><head><title>Sign\n in</title>", "Sign in");
        check("<html><body><center><h1>502 Bad Gateway</h1></center>", "502 Bad Gateway");
        check("<html></html>", "");
        check("", "");
        check("null", "");
        check(r#"{"x":1}"#, r#"{"x":1}"#);
    }

    #[test]
    fn failures_are_told_from_answers() {
        let is_failure = |event: Value| ServerFailure::of_event(&event).is_some();
        for event in [
            json!({ "error": "x" }),
            json!({ "error": { "message": "x" }, "choices": [] }),
            json!({ "object": "error", "message": "x", "code": 500 }),
            json!({ "detail": "x" }),
            json!({ "message": "x" }),
            json!({ "type": "error" }),
            json!({ "choices": null, "error_type": "BadRequestError", "error_message": "x" }),
            json!({ "choices": [{ "delta": {}, "error": { "code": 502, "message": "x" } }] }),
            json!({ "choices": [], "x_groq": { "error": "x" } }),
        ] {
            assert!(is_failure(event.clone()), "{event}");
        }
        for event in [
            json!({}),
            json!({ "choices": [] }),
            json!({ "choices": null, "usage": { "prompt_tokens": 1 }, "message": "done" }),
            json!({ "error": null, "choices": [{ "delta": { "content": "x" } }] }),
            json!({ "error": false, "id": "c" }),
            json!({ "error": {}, "object": "chat.completion.chunk" }),
            json!({ "type": "ping" }),
            json!({ "message": { "content": "x" } }),
            json!({ "choices": [{ "delta": { "content": "x" } }], "message": "ok", "detail": "y" }),
        ] {
            assert!(!is_failure(event.clone()), "{event}");
        }
        let failure =
            ServerFailure::of_event(&json!({ "error": { "message": "x", "code": "429", "param": "seed" } }));
        let failure = failure.unwrap();
        assert_eq!(
            (failure.status, failure.code.as_deref(), failure.field.as_deref()),
            (Some(429), Some("429"), Some("seed"))
        );
    }

    #[test]
    fn words_are_short_and_on_one_line() {
        assert_eq!(quote(" a\n\n b\t", None), ": \"a b\"");
        assert_eq!(quote("", None), ".");
        assert!(quote(&"x".repeat(9000), None).len() < 310);
    }
}
