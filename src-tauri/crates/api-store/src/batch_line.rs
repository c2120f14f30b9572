//! One line of a batch: a request in OpenAI's batch form, or a prompt.

use serde_json::{Map, Value, json};

/// Routes that a batch may use, without `/v1`.
pub const BATCH_ROUTES: &[&str] =
    &["/chat/completions", "/completions", "/embeddings", "/responses", "/rerank"];

/// A line that is not blank.
#[derive(Debug, Clone)]
pub struct BatchLine {
    /// Counts from 1.
    pub number: usize,
    /// SHA-256 of its text, shortened: it tells whether a result belongs to the line.
    pub hash: String,
    /// `None`: it is not UTF-8.
    text: Option<String>,
}

/// A text of an object's field; empty where there is none.
fn text_at<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Digits of a line's hash.
const HASH_DIGITS: usize = 16;

/// What a line asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchRequest {
    pub custom_id: Option<Value>,
    pub path: String,
    pub body: Value,
    pub form: BatchForm,
}

/// How a line is written, and so its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchForm {
    /// `{"custom_id", "method", "url", "body"}`.
    OpenAi,
    /// `{"prompt"}` or `{"messages"}` with the fields of a chat completion.
    Simple,
}

/// Why a line can't be answered.
#[derive(Debug, Clone, PartialEq)]
pub struct LineRefusal {
    pub custom_id: Option<Value>,
    pub form: BatchForm,
    pub message: String,
}

impl BatchLine {
    /// The lines of a file that are not blank.
    pub fn split(bytes: &[u8]) -> Vec<Self> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let lines = (1..).zip(bytes.split(|byte| *byte == b'\n'));
        let lines = lines.map(|(number, line)| (number, line.trim_ascii()));
        let line = |(number, line): (usize, &[u8])| {
            let mut hash = documents::sha256(String::from_utf8_lossy(line).as_bytes());
            hash.truncate(HASH_DIGITS);
            Self { number, hash, text: std::str::from_utf8(line).ok().map(str::to_owned) }
        };
        lines.filter(|(_, line)| !line.is_empty()).map(line).collect()
    }

    /// Parses the line.
    pub fn request(&self) -> Result<BatchRequest, LineRefusal> {
        let refuse = |message: String| LineRefusal { custom_id: None, form: BatchForm::Simple, message };
        let text = self.text.as_deref().ok_or_else(|| refuse("The line is not UTF-8 text.".into()))?;
        let value: Value =
            serde_json::from_str(text).map_err(|error| refuse(format!("The line is not JSON: {error}.")))?;
        let Value::Object(object) = value else {
            return Err(refuse("The line is not a JSON object.".into()));
        };
        let is_open_ai = object.contains_key("body") || object.contains_key("url");
        if is_open_ai { open_ai(&object) } else { simple(object) }
    }
}

fn open_ai(object: &Map<String, Value>) -> Result<BatchRequest, LineRefusal> {
    let custom_id = object.get("custom_id").cloned();
    let refuse =
        |message: String| LineRefusal { custom_id: custom_id.clone(), form: BatchForm::OpenAi, message };
    let value = Value::Object(object.clone());
    if !matches!(text_at(&value, "method"), "" | "POST") {
        return Err(refuse("`method` must be \"POST\".".into()));
    }
    let path = text_at(&value, "url");
    let path = path.strip_prefix("/v1").unwrap_or(path);
    if !BATCH_ROUTES.contains(&path) {
        return Err(refuse(format!("`url` must be one of /v1{}.", BATCH_ROUTES.join(", /v1"))));
    }
    let body = object.get("body").filter(|body| body.is_object());
    let body = body.ok_or_else(|| refuse("`body` must be an object.".into()))?.clone();
    if body["stream"] == true {
        return Err(refuse("`stream` can't be true: the results are a file.".into()));
    }
    Ok(BatchRequest { custom_id, path: format!("/v1{path}"), body, form: BatchForm::OpenAi })
}

/// A chat completion whose message may be called `prompt`, with `system` before it.
fn simple(mut object: Map<String, Value>) -> Result<BatchRequest, LineRefusal> {
    let custom_id = object.shift_remove("custom_id").or_else(|| object.shift_remove("id"));
    let refuse = |message: &str| LineRefusal {
        custom_id: custom_id.clone(),
        form: BatchForm::Simple,
        message: message.into(),
    };
    if object.get("stream").is_some_and(|stream| *stream == true) {
        return Err(refuse("`stream` can't be true: the results are a file."));
    }
    let system = object.shift_remove("system");
    match object.shift_remove("prompt") {
        Some(Value::String(_)) if object.contains_key("messages") => {
            return Err(refuse("The line has `prompt` and `messages`: leave one out."));
        }
        Some(Value::String(prompt)) => {
            let system = system.map(|system| json!({ "role": "system", "content": system }));
            let messages = system.into_iter().chain([json!({ "role": "user", "content": prompt })]);
            object.insert("messages".into(), messages.collect());
        }
        Some(_) => return Err(refuse("`prompt` must be a text.")),
        None if object.contains_key("messages") => {}
        None => return Err(refuse("The line needs `prompt`, `messages`, or `url` and `body`.")),
    }
    Ok(BatchRequest {
        custom_id,
        path: "/v1/chat/completions".into(),
        body: Value::Object(object),
        form: BatchForm::Simple,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> Result<BatchRequest, LineRefusal> {
        BatchLine::split(line.as_bytes()).remove(0).request()
    }

    #[test]
    fn lines_have_two_forms() {
        let batch = request(
            r#"{"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{"input":"x","model":"m"}}"#,
        )
        .unwrap();
        assert_eq!((batch.form, batch.path.as_str()), (BatchForm::OpenAi, "/v1/embeddings"));
        assert_eq!((batch.custom_id, batch.body), (Some(json!("a")), json!({ "input": "x", "model": "m" })));
        let simple = request(r#"{"id":7,"prompt":"Hi","system":"Be brief.","max_tokens":3}"#).unwrap();
        assert_eq!((simple.form, simple.custom_id), (BatchForm::Simple, Some(json!(7))));
        let messages = json!([
            { "role": "system", "content": "Be brief." }, { "role": "user", "content": "Hi" },
        ]);
        assert_eq!(simple.body, json!({ "max_tokens": 3, "messages": messages }));
        assert_eq!(request(r#"{"messages":[]}"#).unwrap().body, json!({ "messages": [] }));
    }

    #[test]
    fn what_is_refused_says_why() {
        for (line, why) in [
            ("{", "not JSON"),
            ("[1]", "not a JSON object"),
            ("{}", "needs `prompt`"),
            (r#"{"prompt":7}"#, "`prompt` must be"),
            (r#"{"prompt":"a","messages":[]}"#, "leave one out"),
            (r#"{"prompt":"a","stream":true}"#, "`stream`"),
            (r#"{"custom_id":"a","url":"/v1/files","body":{}}"#, "`url`"),
            (r#"{"custom_id":"a","url":"/v1/chat/completions"}"#, "`body`"),
            (r#"{"url":"/v1/chat/completions","method":"GET","body":{}}"#, "`method`"),
            (r#"{"url":"/v1/completions","body":{"stream":true}}"#, "`stream`"),
        ] {
            let refusal = request(line).unwrap_err();
            assert!(refusal.message.contains(why), "{line}: {}", refusal.message);
        }
        let bytes = BatchLine::split(b"\xff\xfe\n");
        assert!(bytes[0].request().unwrap_err().message.contains("UTF-8"));
    }

    #[test]
    fn blank_lines_count_but_are_none() {
        let lines = BatchLine::split(b"\xef\xbb\xbf{\"prompt\":\"a\"}\r\n\n  \n{\"prompt\":\"a\"}");
        let numbers: Vec<usize> = lines.iter().map(|line| line.number).collect();
        assert_eq!((numbers, lines[0].hash == lines[1].hash), (vec![1, 4], true));
    }
}
