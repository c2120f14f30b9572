//! The file of a batch: its lines are checked before the first one is answered.

use std::collections::HashSet;

use api_store::{BATCH_ROUTES, BatchForm, BatchLine, BatchRequest};
use serde_json::{Value, json};

use crate::fault::OpenAiFault;
use crate::openai::fields::Result;

/// Most requests of a batch. More than a computer answers in a day.
const MAX_REQUESTS: usize = 10_000;

/// Faults of lines that are listed; a file that is wrong as a whole has one for each line.
const MAX_LISTED_FAULTS: usize = 100;

/// A request of a batch and its name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedRequest {
    pub name: String,
    pub line: usize,
    pub request: BatchRequest,
}

/// The endpoint of a batch, with `/v1`.
pub fn check_endpoint(endpoint: &str) -> Result<String> {
    let path = endpoint.strip_prefix("/v1").unwrap_or(endpoint);
    match BATCH_ROUTES.contains(&path) {
        true => Ok(format!("/v1{path}")),
        false => {
            let message = format!("`endpoint` must be one of /v1{}.", BATCH_ROUTES.join(", /v1"));
            Err(OpenAiFault::invalid("endpoint", message))
        }
    }
}

/// A request of a line, or what is wrong with it.
fn named_request(line: &BatchLine, endpoint: &str) -> std::result::Result<NamedRequest, String> {
    let request = line.request().map_err(|refusal| refusal.message)?;
    let name = request.custom_id.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
    match request.form {
        BatchForm::Simple => Err("The line needs `custom_id`, `method`, `url` and `body`.".into()),
        BatchForm::OpenAi if name.is_empty() => Err("`custom_id` must be a text that is not empty.".into()),
        BatchForm::OpenAi if request.path != endpoint => {
            Err(format!("`url` must be the endpoint of the batch, {endpoint}."))
        }
        BatchForm::OpenAi => Ok(NamedRequest { name, line: line.number, request }),
    }
}

/// The requests of a file that has been checked.
pub fn requests(content: &[u8], endpoint: &str) -> Vec<NamedRequest> {
    BatchLine::split(content).iter().filter_map(|line| named_request(line, endpoint).ok()).collect()
}

/// How many requests a file has, and what is wrong with them, in OpenAI's form.
pub fn line_faults(content: &[u8], endpoint: &str) -> (usize, Vec<Value>) {
    let fault = |code: &str, line: Option<usize>, message: String| json!({ "code": code, "line": line, "message": message, "param": null });
    let lines = BatchLine::split(content);
    if lines.is_empty() {
        return (0, vec![fault("empty_file", None, "The file has no request.".into())]);
    }
    if lines.len() > MAX_REQUESTS {
        let message = format!("The file has {} requests; the most is {MAX_REQUESTS}.", lines.len());
        return (lines.len(), vec![fault("too_many_requests", None, message)]);
    }
    let mut names = HashSet::new();
    let line_fault = |line: &BatchLine| match named_request(line, endpoint) {
        Ok(request) if names.insert(request.name.clone()) => None,
        Ok(request) => {
            let message = format!("Another request has the custom_id {}.", request.name);
            Some(fault("duplicate_custom_id", Some(line.number), message))
        }
        Err(message) => Some(fault("invalid_request", Some(line.number), message)),
    };
    (lines.len(), lines.iter().filter_map(line_fault).take(MAX_LISTED_FAULTS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, url: &str) -> String {
        json!({ "custom_id": name, "method": "POST", "url": url, "body": { "input": "x" } }).to_string()
    }

    #[test]
    fn every_line_is_checked() {
        let good = [line("a", "/v1/embeddings"), line("b", "/v1/embeddings")].join("\n");
        assert_eq!(line_faults(good.as_bytes(), "/v1/embeddings"), (2, Vec::new()));
        let names: Vec<String> =
            requests(good.as_bytes(), "/v1/embeddings").into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["a", "b"]);
        for (second, code, part) in [
            (line("a", "/v1/embeddings"), "duplicate_custom_id", "custom_id a"),
            (line("", "/v1/embeddings"), "invalid_request", "`custom_id`"),
            (line("b", "/v1/responses"), "invalid_request", "/v1/embeddings"),
            ("{".into(), "invalid_request", "not JSON"),
            (r#"{"prompt":"Hi"}"#.into(), "invalid_request", "`body`"),
        ] {
            let file = [line("a", "/v1/embeddings"), second].join("\n");
            let (n_lines, faults) = line_faults(file.as_bytes(), "/v1/embeddings");
            assert_eq!((n_lines, faults.len()), (2, 1), "{file}");
            assert_eq!((&faults[0]["code"], &faults[0]["line"]), (&json!(code), &json!(2)), "{file}");
            assert!(faults[0]["message"].as_str().unwrap().contains(part), "{faults:?}");
        }
        assert_eq!(line_faults(b" \n", "/v1/embeddings").1[0]["code"], "empty_file");
        let many = "{\n".repeat(MAX_REQUESTS + 1);
        assert_eq!(line_faults(many.as_bytes(), "/v1/embeddings").1[0]["code"], "too_many_requests");
        assert_eq!(line_faults("{\n".repeat(200).as_bytes(), "/v1/embeddings").1.len(), MAX_LISTED_FAULTS);
    }

    #[test]
    fn endpoints_are_those_that_answer() {
        assert_eq!(check_endpoint("/v1/responses").unwrap(), "/v1/responses");
        assert_eq!(check_endpoint("/embeddings").unwrap(), "/v1/embeddings");
        assert_eq!(check_endpoint("/v1/moderations").unwrap_err().param.as_deref(), Some("endpoint"));
    }
}
