//! `/tokenize`, `/detokenize`, `/apply-template` and `/props`: what the vocabulary and the template of a model say.

use app::{App, GenerateArgs, SamplingArgs};
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use contract::Result;
use contract::protocol::{ChatOptions, Prompt, PromptMessage, PromptPart, SpecialTokens, TokenPiece};
use prompt::{answer_prefix, openai_messages};
use serde_json::{Map, Value, json};

use super::fault::LlamaCppFault;
use super::response::settings;
use crate::body::read;
use crate::fault::json_response;
use crate::guard::CallerState;
use crate::openai;
use crate::request_fields::{RequestFields, invalid, object};
use crate::running_turn::blocking;
use crate::whole_number;

/// Handles `POST /tokenize`: llama.cpp's form has `content`, vLLM's has messages.
pub async fn tokenize(state: CallerState, body: Body) -> Response {
    let body = match read(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let is_chat = object(&body).is_ok_and(|object| !object.contains_key("content"));
    if is_chat || body.is_empty() {
        return openai::tokenize(state, Body::from(body)).await;
    }
    respond(state, body, tokens).await
}

/// Handles `POST /detokenize`.
pub async fn detokenize(state: CallerState, body: Body) -> Response {
    match read(body).await {
        Ok(body) => respond(state, body, text).await,
        Err(refusal) => refusal,
    }
}

/// Handles `POST /apply-template`.
pub async fn apply_template(state: CallerState, body: Body) -> Response {
    match read(body).await {
        Ok(body) => respond(state, body, rendered).await,
        Err(refusal) => refusal,
    }
}

/// Handles `GET /props`.
pub async fn props(state: CallerState) -> Response {
    respond(state, Bytes::new(), |app, _| properties(app)).await
}

async fn respond(
    CallerState(shared): CallerState,
    body: Bytes,
    work: impl FnOnce(&App, &[u8]) -> Result<Value> + Send + 'static,
) -> Response {
    match blocking(move || work(&shared.app, &body)).await {
        Ok(value) => json_response(StatusCode::OK, &value),
        Err(error) => LlamaCppFault::from(error).into_response(),
    }
}

fn tokens(app: &App, body: &[u8]) -> Result<Value> {
    let object = object(body)?;
    let fields = RequestFields(&object);
    let add = match fields.boolean("add_special")? {
        Some(true) => SpecialTokens::Around,
        Some(false) | None => SpecialTokens::Without,
    };
    let parse_special = fields.boolean("parse_special")?.unwrap_or(true);
    let parts = match fields.get("content") {
        None => Vec::new(),
        Some(Value::String(text)) => vec![PromptPart::Text(text.clone())],
        Some(Value::Array(list)) => list.iter().map(part).collect::<Result<_>>()?,
        Some(_) => return Err(invalid("`content` must be a text, or a list of texts and tokens.")),
    };
    let model = app.model_for_request(fields.text("model")?)?.id;
    let tokens = app.tokenize(&model, parts, add, parse_special)?;
    let with_pieces = fields.boolean("with_pieces")?.unwrap_or(false);
    let token = |token: &TokenPiece| match with_pieces {
        true => json!({ "id": token.id, "piece": piece(&token.bytes) }),
        false => json!(token.id),
    };
    Ok(json!({ "tokens": tokens.iter().map(token).collect::<Vec<_>>() }))
}

/// A text, or the bytes of a part of a character.
fn piece(bytes: &[u8]) -> Value {
    std::str::from_utf8(bytes).map_or_else(|_| json!(bytes), |text| json!(text))
}

fn part(value: &Value) -> Result<PromptPart> {
    match value {
        Value::String(text) => Ok(PromptPart::Text(text.clone())),
        value => Ok(PromptPart::Ids(vec![token_id(value, "content")?])),
    }
}

fn token_id(value: &Value, field: &str) -> Result<u32> {
    whole_number::token_id(value)
        .ok_or_else(|| invalid(format!("`{field}` has a token that is no number of one.")))
}

/// Every field is optional, and so is the body.
fn text(app: &App, body: &[u8]) -> Result<Value> {
    let object = if body.is_empty() { Map::new() } else { object(body)? };
    let fields = RequestFields(&object);
    let list = fields.list("tokens")?.map(Vec::as_slice).unwrap_or_default();
    let ids = list.iter().map(|id| token_id(id, "tokens")).collect::<Result<_>>()?;
    let model = app.model_for_request(fields.text("model")?)?.id;
    Ok(json!({ "content": app.detokenize(&model, ids)? }))
}

fn rendered(app: &App, body: &[u8]) -> Result<Value> {
    let object = object(body)?;
    let fields = RequestFields(&object);
    let Some(list) = fields.list("messages")? else { return Err(invalid("`messages` is required.")) };
    let message = |(index, value): (usize, &Value)| {
        openai_messages::message(value).map_err(|what| invalid(format!("Message {index}: {what}")))
    };
    let messages: Vec<PromptMessage> = list.iter().enumerate().map(message).collect::<Result<_>>()?;
    let tools = openai_messages::tools(fields.get("tools").unwrap_or(&Value::Null));
    let mut kwargs = match fields.object("chat_template_kwargs")? {
        Some(kwargs) => kwargs.0.clone(),
        None => Map::new(),
    };
    let begins = fields.boolean("add_generation_prompt")?;
    let continues = fields.boolean("continue_final_message")?;
    let is_continued = answer_prefix::is_continued(&messages, begins, continues).map_err(invalid)?;
    answer_prefix::set(&mut kwargs, begins, is_continued);
    let chat = ChatOptions {
        tools: tools.map_err(|what| invalid(format!("tools: {what}")))?,
        kwargs,
        ..ChatOptions::default()
    };
    let args = GenerateArgs {
        model: None,
        prompt: Prompt::Chat(messages),
        sampling: SamplingArgs::default(),
        max_tokens: None,
        stop: Vec::new(),
        ignore_eos: false,
        chat,
        constraint: None,
        logprobs: None,
    };
    let model = app.model_for_request(fields.text("model")?)?.id;
    Ok(json!({ "prompt": app.rendered_prompt(&model, args)? }))
}

fn properties(app: &App) -> Result<Value> {
    let model = app.model_for_request(None)?;
    let description = app.vocabulary_description(&model.id)?;
    let sampling = app.effective_sampling(&SamplingArgs::default())?;
    let params = settings(&sampling, app.effective_max_tokens(None)?, &[], 0);
    let entry = app.model_get(&model.id)?;
    let n_ctx = model.context.unwrap_or(description.context_length);
    Ok(json!({
        "default_generation_settings": { "params": params, "n_ctx": n_ctx },
        "total_slots": app.answers_at_once()?,
        "model_alias": model.id, "model_path": entry.path.unwrap_or(model.id.clone()),
        "modalities": { "vision": false, "audio": false },
        "chat_template": description.template, "bos_token": description.bos, "eos_token": description.eos,
        "build_info": format!("inglenook {}", app.app_info().version), "is_sleeping": false,
    }))
}
