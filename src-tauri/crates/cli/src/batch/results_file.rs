//! The results of a batch: one line each, appended as the answers come.
//!
//! A line that a killed process left half written is dropped, and so is a failure that may pass: both are answered
//! again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use api_store::{BatchForm, BatchLine, BatchRequest, LineRefusal};
use contract::{Error, ErrorKind, Result};
use io::{FileLock, Io, RealIo};
use serde_json::{Value, json};

use super::text_at;

/// Largest file of results that is continued.
const MAX_RESULTS_BYTES: u64 = 8 << 30;

/// What came of one line.
#[derive(Debug, Clone)]
pub struct BatchResult {
    pub is_success: bool,
    number: usize,
    value: Value,
    failure: Option<String>,
}

impl BatchResult {
    /// A line that is no request.
    pub fn refused(line: &BatchLine, refusal: &LineRefusal) -> Self {
        let error = json!({ "code": "batch.line", "message": refusal.message });
        let mut value = start(line, refusal.custom_id.as_ref());
        if refusal.form == BatchForm::OpenAi {
            value["response"] = Value::Null;
        }
        value["error"] = error;
        Self { is_success: false, number: line.number, value, failure: Some(refusal.message.clone()) }
    }

    /// A line that a route answered, with whatever status.
    pub fn answered(line: &BatchLine, request: &BatchRequest, status: u16, body: &Value) -> Self {
        let is_success = (200..300).contains(&status);
        let mut value = start(line, request.custom_id.as_ref());
        match request.form {
            BatchForm::OpenAi => {
                value["id"] = format!("batch_req_{}_{}", line.hash, line.number).into();
                value["response"] = json!({ "status_code": status, "request_id": body["id"], "body": body });
                value["error"] = Value::Null;
            }
            BatchForm::Simple if is_success => {
                let choice = &body["choices"][0];
                value["text"] = text_at(&choice["message"], "content").into();
                for name in ["reasoning_content", "tool_calls"] {
                    if let Some(part) = choice["message"].get(name) {
                        value[name] = part.clone();
                    }
                }
                value["finish"] = choice["finish_reason"].clone();
                value["model"] = body["model"].clone();
                value["usage"] = body["usage"].clone();
            }
            BatchForm::Simple => {
                value["status"] = status.into();
                value["error"] =
                    json!({ "code": body["error"]["code"], "message": body["error"]["message"] });
            }
        }
        let failure = (!is_success).then(|| text_at(&body["error"], "message").to_owned());
        Self { is_success, number: line.number, value, failure }
    }

    /// What a person reads of a line that failed; empty for one that did not.
    pub fn failure(&self) -> String {
        let describe = |failure: &String| format!(": line {} failed: {failure}", self.number);
        self.failure.as_ref().map(describe).unwrap_or_default()
    }
}

fn start(line: &BatchLine, custom_id: Option<&Value>) -> Value {
    let mut value = json!({ "line": line.number, "request": line.hash });
    if let Some(id) = custom_id {
        value["custom_id"] = id.clone();
    }
    value
}

/// A file of results that is written.
pub struct ResultsFile {
    path: PathBuf,
    /// Lines that have a result from before, by number.
    kept: HashMap<usize, String>,
    _lock: FileLock,
}

impl ResultsFile {
    /// Opens the results of `lines`, new or to be continued.
    ///
    /// Errors: another process writes them; they belong to other lines.
    pub fn open(path: &Path, lines: &[BatchLine]) -> Result<Self> {
        let lock = path.with_extension("jsonl.lock");
        let lock = FileLock::try_acquire(&lock)?.ok_or_else(|| in_use(path))?;
        if !RealIo.exists(path)? {
            RealIo.write_atomic(path, b"")?;
            return Ok(Self { path: path.into(), kept: HashMap::new(), _lock: lock });
        }
        let bytes = RealIo.read_within(path, MAX_RESULTS_BYTES)?;
        let by_number: HashMap<usize, &BatchLine> = lines.iter().map(|line| (line.number, line)).collect();
        let (mut kept, mut intact) = (HashMap::new(), Vec::with_capacity(bytes.len()));
        for text in bytes.split_inclusive(|byte| *byte == b'\n') {
            let Some(result) = whole_result(text) else { continue };
            let number = result["line"].as_u64().and_then(|number| usize::try_from(number).ok());
            let line = number.and_then(|number| by_number.get(&number));
            let line = line.filter(|line| line.hash == text_at(&result, "request"));
            let line = line.ok_or_else(|| other_requests(path, &result["line"]))?;
            if is_final(&result) && kept.insert(line.number, line.hash.clone()).is_none() {
                intact.extend_from_slice(text);
            }
        }
        if intact.len() != bytes.len() {
            RealIo.write_atomic(path, &intact)?;
        }
        Ok(Self { path: path.into(), kept, _lock: lock })
    }

    /// Whether a line has a result from before.
    pub fn has(&self, number: usize) -> bool {
        self.kept.contains_key(&number)
    }

    /// Results from before.
    pub fn n_kept(&self) -> usize {
        self.kept.len()
    }

    /// Adds a result.
    pub fn append(&mut self, result: &BatchResult) -> Result<()> {
        let text = format!("{}\n", result.value);
        Ok(RealIo.append(&self.path, text.as_bytes())?)
    }
}

/// A result whose line was written to its end.
fn whole_result(text: &[u8]) -> Option<Value> {
    let text = text.strip_suffix(b"\n")?;
    serde_json::from_slice(text).ok().filter(Value::is_object)
}

/// Whether the same request would have the same outcome: the server was neither full nor broken.
fn is_final(result: &Value) -> bool {
    let status = result["status"].as_u64().or_else(|| result["response"]["status_code"].as_u64());
    status.is_none_or(|status| status < 500 && status != 429)
}

fn in_use(path: &Path) -> Error {
    Error::new(
        ErrorKind::Conflict,
        "batch.in_use",
        format!("Another process writes {}.", path.display()),
        "Wait for it, or name another file with --out.",
    )
}

fn other_requests(path: &Path, line: &Value) -> Error {
    Error::input(
        "batch.other_requests",
        format!("{} has a result for line {line}, whose request is another one now.", path.display()),
        "Name another file with --out, or remove this one to answer every line again.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<BatchLine> {
        BatchLine::split(text.as_bytes())
    }

    fn result(line: &BatchLine, status: u16) -> BatchResult {
        let body = match status {
            200 => json!({ "choices": [{ "message": { "content": "ok" }, "finish_reason": "stop" }] }),
            _ => json!({ "error": { "code": "x", "message": "wrong" } }),
        };
        BatchResult::answered(line, &line.request().unwrap(), status, &body)
    }

    #[test]
    fn a_killed_batch_goes_on_where_it_stopped() {
        let folder = std::env::temp_dir().join(format!("nook-batch-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("results.jsonl");
        let lines = lines("{\"prompt\":\"a\"}\n{\"prompt\":\"b\"}\n{\"prompt\":\"c\"}\n{\"prompt\":\"d\"}\n");
        let mut first = ResultsFile::open(&path, &lines).unwrap();
        assert_eq!(
            ResultsFile::open(&path, &lines).err().map(|error| error.code().to_owned()),
            Some("batch.in_use".into())
        );
        for (at, status) in [(1, 200), (0, 429), (2, 400)] {
            first.append(&result(&lines[at], status)).unwrap();
        }
        drop(first);
        // the process was killed within a line
        RealIo.append(&path, b"{\"line\":4,\"request\":\"").unwrap();
        let mut again = ResultsFile::open(&path, &lines).unwrap();
        let kept: Vec<bool> = (1..=4).map(|number| again.has(number)).collect();
        assert_eq!((kept, again.n_kept()), (vec![false, true, true, false], 2));
        again.append(&result(&lines[3], 200)).unwrap();
        drop(again);
        let text = std::fs::read_to_string(&path).unwrap();
        let numbers: Vec<u64> = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["line"].as_u64().unwrap())
            .collect();
        assert_eq!(numbers, [2, 3, 4]);
        let changed = BatchLine::split(b"{\"prompt\":\"a\"}\n{\"prompt\":\"another\"}\n");
        assert_eq!(
            ResultsFile::open(&path, &changed).err().map(|error| error.code().to_owned()),
            Some("batch.other_requests".into())
        );
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn results_have_the_form_of_their_line() {
        let lines = lines(
            "{\"id\":\"s\",\"prompt\":\"a\"}\n{\"custom_id\":\"o\",\"url\":\"/v1/chat/completions\",\"body\":{}}\n{\n",
        );
        let simple = result(&lines[0], 200);
        assert_eq!((&simple.value["text"], &simple.value["custom_id"]), (&json!("ok"), &json!("s")));
        let failed = result(&lines[0], 400);
        assert_eq!((&failed.value["error"]["message"], failed.is_success), (&json!("wrong"), false));
        let batch = result(&lines[1], 200);
        assert_eq!(
            (&batch.value["response"]["status_code"], &batch.value["error"]),
            (&json!(200), &Value::Null)
        );
        let refused = BatchResult::refused(&lines[2], &lines[2].request().unwrap_err());
        assert_eq!(
            (&refused.value["line"], &refused.value["error"]["code"]),
            (&json!(3), &json!("batch.line"))
        );
    }
}
