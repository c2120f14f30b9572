//! `POST /v1/completions`: continuations of texts, at once or as a stream.

pub mod request;
mod response;

use app::{App, GenerateArgs};
use axum::body::Body;
use axum::response::Response;
use contract::protocol::{GapText, Prompt};

use super::answer_values::Identity;
use super::fields::Result;
use super::sampling_fields::seeded;
use super::turn_set::{ChoiceEvent, TurnSet};
use super::{answered, answering_model, blocking, new_id, now_s, ok};
use crate::RouteState;
use crate::fault::OpenAiFault;
use crate::guard::CallerState;
use crate::stream::Sse;
pub use request::ids;
use request::{CompletionRequest, TextPrompt};
use response::{TextBuilder, TextStreamWriter};

/// Handles `POST /v1/completions`.
pub async fn complete(CallerState(shared): CallerState, body: Body) -> Response {
    answered(body, |body| async move { answer(shared, &body).await }).await
}

async fn answer(shared: RouteState, body: &[u8]) -> Result<Response> {
    let request = CompletionRequest::parse(body)?;
    let model = answering_model(shared.app.clone(), request.model.clone()).await?.id;
    let echoed = match request.is_echoed {
        true => texts(shared.app.clone(), model.clone(), request.prompts.clone()).await?,
        false => vec![String::new(); request.prompts.len()],
    };
    let all = turns(shared.app.clone(), model.clone(), &request).await?;
    let mut turns = TurnSet::start(shared.app.clone(), all).await.map_err(about_prompt)?;
    let identity = Identity { id: new_id("cmpl"), created: now_s(), model };
    if !request.stream {
        let mut whole = TextBuilder::new(echoed, request.n_runs(), request.logprobs);
        while let Some(events) = turns.next().await {
            for event in events {
                whole.take(event).map_err(about_prompt)?;
            }
        }
        return Ok(ok(&whole.into_value(&identity, request.n_choices)?));
    }
    // Wait for the model to accept the prompt, so that a rejected one still gets an error status.
    let mut begun = Some(turns.until_accepted().await.map_err(about_prompt)?);
    let mut writer =
        TextStreamWriter::new(identity, echoed, request.n_choices, request.logprobs, request.include_usage);
    let write = move |events: Option<Vec<ChoiceEvent>>| {
        let mut text = String::new();
        if let Some(begun) = begun.take() {
            text.push_str(&writer.begin());
            begun.into_iter().for_each(|event| text.push_str(&writer.write(event)));
        }
        match events {
            Some(events) => events.into_iter().for_each(|event| text.push_str(&writer.write(event))),
            None => text.push_str(&writer.end()),
        }
        text
    };
    Ok(Sse::new(turns, write, &shared.stopping, false).into_response())
}

/// Attributes a length error to `prompt` instead of `messages`.
fn about_prompt(fault: OpenAiFault) -> OpenAiFault {
    match fault.param.as_deref() {
        Some("messages") => OpenAiFault { param: Some("prompt".into()), ..fault },
        Some(_) | None => fault,
    }
}

/// The turns of a request: those of the first prompt, then those of the next.
async fn turns(app: App, model: String, request: &CompletionRequest) -> Result<Vec<GenerateArgs>> {
    let (n_runs, args) = (request.n_runs(), request.args.clone());
    let (prompts, suffix) = (request.prompts.clone(), request.suffix.clone());
    blocking(move || {
        let mut all = Vec::new();
        for prompt in prompts {
            let prompt = match (prompt, &suffix) {
                (TextPrompt::Text(prefix), Some(suffix)) => {
                    let gap = GapText { prefix, suffix: suffix.clone(), files: Vec::new() };
                    let tokens = app.fill_in_prompt(&model, gap)?;
                    Prompt::Ids(tokens.into_iter().map(|token| token.id).collect())
                }
                (TextPrompt::Text(text), None) => Prompt::Raw(text),
                (TextPrompt::Ids(ids), _) => Prompt::Ids(ids),
            };
            all.extend((0..n_runs).map(|run| GenerateArgs {
                model: Some(model.clone()),
                prompt: prompt.clone(),
                sampling: seeded(&args.sampling, run),
                ..args.clone()
            }));
        }
        Ok(all)
    })
    .await
    .map_err(about_suffix)
}

/// A model that can't fill in is no fault of the server.
fn about_suffix(fault: OpenAiFault) -> OpenAiFault {
    match fault.code.as_deref() {
        Some("model.no_fill_in") => OpenAiFault { param: Some("suffix".into()), ..fault },
        Some(_) | None => fault,
    }
}

/// The prompts as texts.
async fn texts(app: App, model: String, prompts: Vec<TextPrompt>) -> Result<Vec<String>> {
    blocking(move || {
        let text = |prompt| match prompt {
            TextPrompt::Text(text) => Ok(text),
            TextPrompt::Ids(ids) => app.detokenize(&model, ids),
        };
        prompts.into_iter().map(text).collect()
    })
    .await
}
