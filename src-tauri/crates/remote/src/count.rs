//! Counts a conversation's tokens for a model whose vocabulary isn't here. An estimate by bytes,
//! calibrated by the server's earlier counts for that model; exact by the server's route, if it has
//! one and receives the text anyway. An unsent draft is never sent to be counted.

use compaction::TokenBudget;
use serde_json::{Value, json};

use super::dialect::{CountRoute, Dialect};
use super::fault::Fault;
use super::http::HttpCall;
use super::{RemoteContext, Server};
use contract::Result;
use contract::protocol::{
    ChatOptions, CountRequest, FitOutcome, FitRequest, GenerateRequest, Location, PromptImage, PromptMessage,
    TokenCounts,
};
use contract::types::ConnectionPurpose;
use prompt::context_fit::{Counts, Fit, Fitting, Why};

/// Of English and most code; others have fewer, and are counted as more than they are until a server has counted.
const BYTES_A_TOKEN: f64 = 4.0;

/// What common services count for an image, about.
const PIXELS_A_TOKEN: u64 = 750;
const MAX_IMAGE_TOKENS: u64 = 1600;

/// Markup around a message.
const TOKENS_A_MESSAGE: f64 = 4.0;

/// A context that no server says the length of is as long as that, for those who want it shorter.
const UNKNOWN_CONTEXT: usize = 1 << 20;

/// Counts by bytes.
pub struct About {
    /// Tokens as the server counted them for each as estimated here.
    pub ratio: f64,
}

impl Counts for About {
    fn n_tokens(&self, messages: &[PromptMessage], options: &ChatOptions) -> Result<usize> {
        Ok((estimate(messages, options) * self.ratio).ceil() as usize)
    }

    fn n_first(&self, head: &[PromptMessage], options: &ChatOptions) -> Result<usize> {
        self.n_tokens(head, options)
    }
}

/// Without regard to the model.
pub fn estimate(messages: &[PromptMessage], options: &ChatOptions) -> f64 {
    let bytes = |message: &PromptMessage| {
        let calls: usize = message.tool_calls.iter().map(|call| call.to_string().len()).sum();
        let pixels = |image: &PromptImage| u64::from(image.width).saturating_mul(u64::from(image.height));
        let images: u64 =
            message.images.iter().map(|it| (pixels(it) / PIXELS_A_TOKEN).min(MAX_IMAGE_TOKENS)).sum();
        message.content.len() + calls + (images as f64 * BYTES_A_TOKEN) as usize
    };
    let words: usize = messages.iter().map(bytes).sum();
    let tools = if options.tools.is_null() { 0 } else { options.tools.to_string().len() };
    (words + tools) as f64 / BYTES_A_TOKEN + messages.len() as f64 * TOKENS_A_MESSAGE
}

/// A draft, about.
pub(crate) fn draft(context: &RemoteContext, request: &CountRequest) -> TokenCounts {
    let about = About { ratio: context.remote.ratio(&request.model.id) };
    let limit = context.context_of(&request.model);
    let messages = match &request.compression {
        Some(compression) if limit > 0 => {
            let room = TokenBudget::new(limit, None);
            Fitting::new(&about, &request.chat, compression, &request.messages, room).messages_now()
        }
        Some(_) | None => request.messages.clone(),
    };
    let tokens = about.n_tokens(&messages, &request.chat).unwrap_or(0);
    TokenCounts {
        tokens: u32::try_from(tokens).unwrap_or(u32::MAX),
        context_limit: u32::try_from(limit).unwrap_or(u32::MAX),
        can_think_or_not: context.kind_of(&request.model).is_some_and(|kind| Dialect(kind).takes_kwargs()),
        // Unknown for a model of another server.
        has_efforts: false,
        is_about: true,
        texts: request.texts.iter().map(|text| of_text(text, about.ratio)).collect(),
    }
}

fn of_text(text: &str, ratio: f64) -> u32 {
    (text.len() as f64 / BYTES_A_TOKEN * ratio).ceil() as u32
}

/// Makes a conversation shorter, or looks ahead.
pub(crate) fn fit(context: &RemoteContext, request: &FitRequest) -> Result<FitOutcome> {
    let FitRequest { count, max_tokens, ahead } = request;
    let Some(compression) = &count.compression else { return Ok(FitOutcome::Nothing) };
    let about = About { ratio: context.remote.ratio(&count.model.id) };
    let limit = context.context_of(&count.model);
    if *ahead && limit == 0 {
        return Ok(FitOutcome::Nothing);
    }
    let room = TokenBudget::new(if limit == 0 { UNKNOWN_CONTEXT } else { limit }, *max_tokens);
    let fitting = Fitting::new(&about, &count.chat, compression, &count.messages, room);
    let wanting = |wanted| FitOutcome::Wanting { wanted: Box::new(wanted) };
    if *ahead {
        return Ok(fitting.ahead()?.map_or(FitOutcome::Nothing, wanting));
    }
    Ok(match fitting.fit(Why::Asked)? {
        Fit::Ready { compacted: Some(range), .. } => FitOutcome::Compacted { range },
        Fit::Ready { compacted: None, .. } => FitOutcome::Nothing,
        Fit::Wanting(wanted) => wanting(wanted),
    })
}

/// As the server counts. None: there are images, it has no route for that, or it failed, which costs exactness only.
pub async fn exactly(
    context: &RemoteContext,
    server: &Server,
    model: &str,
    messages: &[PromptMessage],
    options: &ChatOptions,
) -> Option<usize> {
    if messages.iter().any(|message| !message.images.is_empty()) {
        return None;
    }
    let said = Dialect(server.kind).messages(messages);
    let counted = match Dialect(server.kind).counting() {
        CountRoute::Messages => {
            let mut body = json!({ "model": model, "messages": said, "add_generation_prompt": true });
            if !options.tools.is_null() {
                body["tools"] = options.tools.clone();
            }
            if !options.kwargs.is_empty() {
                body["chat_template_kwargs"] = options.kwargs.clone().into();
            }
            let counted = post(context, server, "/tokenize", &body).await;
            counted.map(|value| value.get("count").and_then(Value::as_u64))
        }
        CountRoute::Text => by_text(context, server, &said).await,
        CountRoute::None => return None,
    };
    match counted {
        Ok(n) => n.and_then(|n| usize::try_from(n).ok()),
        Err(fault) => {
            tracing::debug!(code = fault.error.code(), "no exact count: {}", fault.error);
            None
        }
    }
}

/// llama.cpp's way: the template, then the text.
async fn by_text(context: &RemoteContext, server: &Server, messages: &Value) -> Result<Option<u64>, Fault> {
    let rendered = post(context, server, "/apply-template", &json!({ "messages": messages })).await?;
    let Some(prompt) = rendered.get("prompt").and_then(Value::as_str) else { return Ok(None) };
    let body = json!({ "content": prompt, "add_special": true, "parse_special": true });
    let tokens = post(context, server, "/tokenize", &body).await?;
    Ok(tokens.get("tokens").and_then(Value::as_array).map(|tokens| tokens.len() as u64))
}

/// By whichever server is next.
pub(crate) async fn counted(
    context: &RemoteContext,
    request: &GenerateRequest,
    messages: &[PromptMessage],
) -> Option<usize> {
    let Location::Remote { name, model } = &request.model.location else { return None };
    let rows = context.directory.candidates(name, model).ok()?;
    let server = rows.iter().find_map(|row| context.server_of(row).ok())?;
    exactly(context, &server, model, messages, &request.chat).await
}

async fn post(context: &RemoteContext, server: &Server, path: &str, body: &Value) -> Result<Value, Fault> {
    let call = HttpCall {
        address: &server.address,
        url: server.address.beside(path),
        key: server.key.as_ref(),
        body: Some(body.to_string().into_bytes()),
        purpose: ConnectionPurpose::Count,
        silence: context.silence(),
    };
    context.http()?.ask(&context.gate, call).await?.json().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_is_not_far_off() {
        let message = |content: &str| PromptMessage { content: content.into(), ..PromptMessage::default() };
        let about = About { ratio: 1.0 };
        let count = |content: &str| about.n_tokens(&[message(content)], &ChatOptions::default()).unwrap();
        assert_eq!(count(""), 4);
        assert_eq!(count(&"word ".repeat(100)), 129);
        let half = About { ratio: 0.5 };
        assert_eq!(half.n_tokens(&[message("")], &ChatOptions::default()).unwrap(), 2);
    }
}
