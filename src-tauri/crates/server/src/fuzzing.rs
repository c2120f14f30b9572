//! Entry points for fuzz targets.

use axum::body::Bytes;
use futures_util::FutureExt;

use crate::anthropic::batches;
use crate::anthropic::request::MessagesRequest;
use crate::file_form::FileForm;
use crate::llama_cpp::request::LlamaCppRequest;
use crate::ollama::pull::PullRequest;
use crate::ollama::request::{AnswerKind, OllamaRequest};
use crate::openai::batches::input::{line_faults, requests};
use crate::openai::chat::request::ChatRequest;
use crate::openai::completions::request::CompletionRequest;
use crate::openai::embeddings::EmbeddingsRequest;
use crate::openai::rerank::RerankRequest;
use crate::openai::responses::request::ResponseRequest;
use crate::partial_json;

/// Parses a body as every kind of request. Returns which of them accept it, in the order of the code.
pub fn parse_body(body: &[u8]) -> Vec<bool> {
    vec![
        ChatRequest::parse(body).is_ok(),
        CompletionRequest::parse(body).is_ok(),
        EmbeddingsRequest::parse(body).is_ok(),
        RerankRequest::parse(body).is_ok(),
        ResponseRequest::parse(body).is_ok(),
        MessagesRequest::parse(body).is_ok(),
        batches::requests(body).is_ok(),
        OllamaRequest::parse(AnswerKind::Chat, body).is_ok(),
        OllamaRequest::parse(AnswerKind::Generate, body).is_ok(),
        PullRequest::parse(body).is_ok(),
        LlamaCppRequest::parse(body).is_ok(),
        is_file_form(body),
        is_batch_file(body),
        std::str::from_utf8(body).is_ok_and(|text| partial_json::arguments_object(text).is_some()),
    ]
}

/// Returns whether a body is a form with a file. It is parsed in one poll, since it waits for nothing.
fn is_file_form(body: &[u8]) -> bool {
    let form = FileForm::parse("multipart/form-data; boundary=x", Bytes::copy_from_slice(body), "file");
    form.now_or_never().expect("a held body is parsed in one poll").is_ok()
}

/// Returns whether a file is a batch for `/v1/chat/completions` without faults. Its requests are then all found again.
fn is_batch_file(file: &[u8]) -> bool {
    const ENDPOINT: &str = "/v1/chat/completions";
    let (n_lines, faults) = line_faults(file, ENDPOINT);
    if faults.is_empty() {
        assert_eq!(requests(file, ENDPOINT).len(), n_lines, "each line is a request");
    }
    faults.is_empty()
}
