//! `POST /v1/chat/completions`: answers to conversations, at once or as a stream.

pub mod request;
mod response;

use app::{App, GenerateArgs};
use axum::body::Body;
use axum::response::Response;
use contract::protocol::TokenCounts;
use serde_json::json;

use super::answer_values::Identity;
use super::fields::Result;
use super::sampling_fields::seeded;
use super::stored_completions::StoreJob;
use super::turn_set::{ChoiceEvent, TurnSet};
use super::{answered, answering_model, blocking, now_s, ok};
use crate::RouteState;
use crate::fault::{CONTEXT_FULL_TYPE, ContextOverflow, OpenAiFault};
use crate::guard::CallerState;
use crate::owner::ObjectOwner;
use crate::stream::Sse;
use request::{AnswerShape, ChatRequest};
pub use request::{StoredFields, chat_options, effort, metadata};
use response::{CompletionBuilder, StreamWriter};

/// Handles `POST /v1/chat/completions`.
pub async fn complete(CallerState(shared): CallerState, owner: ObjectOwner, body: Body) -> Response {
    answered(body, |body| async move { answer(shared, owner, &body).await }).await
}

/// Handles `POST /tokenize` like vLLM: counts the prompt tokens of a chat request.
pub async fn tokenize(CallerState(shared): CallerState, body: Body) -> Response {
    answered(body, |body| async move {
        let counted = count(shared, &body).await?;
        Ok(ok(&json!({ "count": counted.tokens, "max_model_len": counted.context_limit })))
    })
    .await
}

/// Handles `POST /v1/chat/completions/input_tokens` like llama.cpp.
pub async fn input_tokens(CallerState(shared): CallerState, body: Body) -> Response {
    answered(body, |body| async move {
        let counted = count(shared, &body).await?;
        Ok(ok(&json!({ "input_tokens": counted.tokens })))
    })
    .await
}

async fn count(shared: RouteState, body: &[u8]) -> Result<TokenCounts> {
    let ChatRequest { model, args, .. } = ChatRequest::parse(body)?;
    let model = answering_model(shared.app.clone(), model).await?.id;
    blocking(move || shared.app.prompt_count(Some(model), args)).await
}

/// Adds the sizes to the error for a prompt that does not fit: it has to be counted for that.
async fn with_overflow(app: App, model: String, args: GenerateArgs, fault: OpenAiFault) -> OpenAiFault {
    if fault.kind != CONTEXT_FULL_TYPE {
        return fault;
    }
    let counted = blocking(move || app.prompt_count(Some(model), args)).await;
    let overflow = counted
        .ok()
        .map(|counted| ContextOverflow { n_prompt_tokens: counted.tokens, n_ctx: counted.context_limit });
    OpenAiFault { overflow, ..fault }
}

async fn answer(shared: RouteState, owner: ObjectOwner, body: &[u8]) -> Result<Response> {
    let ChatRequest { model, args, n_choices, stream, shape, stored } = ChatRequest::parse(body)?;
    let model = answering_model(shared.app.clone(), model).await?.id;
    let asked = (shared.app.clone(), model.clone(), args.clone());
    let answered = answer_by(shared, owner, (model, args), (n_choices, stream, shape), stored).await;
    match answered {
        Ok(response) => Ok(response),
        Err(fault) => Err(with_overflow(asked.0, asked.1, asked.2, fault).await),
    }
}

async fn answer_by(
    shared: RouteState,
    owner: ObjectOwner,
    (model, args): (String, GenerateArgs),
    (n_choices, stream, shape): (usize, bool, AnswerShape),
    stored: Option<StoredFields>,
) -> Result<Response> {
    let choice = |choice: usize| GenerateArgs {
        model: Some(model.clone()),
        sampling: seeded(&args.sampling, choice),
        ..args.clone()
    };
    let prompt = match shape.is_verbose && !stream {
        true => {
            let (app, model, args) = (shared.app.clone(), model.clone(), args.clone());
            Some(blocking(move || app.rendered_prompt(&model, args)).await?)
        }
        false => None,
    };
    let turns = TurnSet::start(shared.app.clone(), (0..n_choices).map(choice).collect()).await?;
    let id = format!("chatcmpl-{}", turns.first_turn().replace('-', ""));
    let identity = Identity { id, created: now_s(), model };
    let job = stored.map(|fields| StoreJob { owner, fields, identity: identity.clone() });
    if !stream {
        return whole(shared.app, turns, &identity, (shape, n_choices), (job, prompt)).await;
    }
    streamed(&shared, turns, identity, (shape, n_choices), job).await
}

async fn whole(
    app: App,
    mut turns: TurnSet,
    identity: &Identity,
    (shape, n_choices): (AnswerShape, usize),
    (job, prompt): (Option<StoreJob>, Option<String>),
) -> Result<Response> {
    let mut whole = CompletionBuilder::new(shape, n_choices);
    while let Some(events) = turns.next().await {
        for event in events {
            whole.take(event)?;
        }
    }
    drop(turns);
    let mut completion = whole.into_value(identity)?;
    if let Some(prompt) = prompt {
        completion["__verbose"] = json!({ "prompt": prompt });
    }
    if let Some(job) = job {
        let completion = completion.clone();
        blocking(move || job.run(&app, completion)).await?;
    }
    Ok(ok(&completion))
}

async fn streamed(
    shared: &RouteState,
    mut turns: TurnSet,
    identity: Identity,
    (shape, n_choices): (AnswerShape, usize),
    job: Option<StoreJob>,
) -> Result<Response> {
    // Wait for the model to accept the prompt, so that a rejected one still gets an error status.
    let mut begun = Some(turns.until_accepted().await?);
    let app = shared.app.clone();
    let mut collected = job.map(|job| (job, CompletionBuilder::new(shape, n_choices)));
    let mut writer = StreamWriter::new(identity, shape, n_choices);
    let mut one = move |event: ChoiceEvent, writer: &mut StreamWriter| {
        // An answer that failed is not stored.
        collected = collected
            .take()
            .and_then(|(job, mut builder)| builder.take(event.clone()).is_ok().then_some((job, builder)));
        let is_complete = collected.as_ref().is_some_and(|(_, builder)| builder.is_complete());
        if is_complete && let Some((job, builder)) = collected.take() {
            job.run_apart(app.clone(), builder);
        }
        writer.write(event)
    };
    let write = move |events: Option<Vec<ChoiceEvent>>| {
        let mut text = String::new();
        if let Some(begun) = begun.take() {
            text.push_str(&writer.begin());
            begun.into_iter().for_each(|event| text.push_str(&one(event, &mut writer)));
        }
        match events {
            Some(events) => events.into_iter().for_each(|event| text.push_str(&one(event, &mut writer))),
            None => text.push_str(&writer.end()),
        }
        text
    };
    Ok(Sse::new(turns, write, &shared.stopping, false).into_response())
}

impl CompletionBuilder {
    /// Whether every choice has ended.
    fn is_complete(&self) -> bool {
        self.n_open() == 0
    }
}

impl StoreJob {
    /// Stores a completion while its client reads the end of it.
    fn run_apart(self, app: App, builder: CompletionBuilder) {
        tokio::task::spawn_blocking(move || {
            let completion = builder.into_value(&self.identity);
            let stored = completion
                .map_err(|fault| fault.message)
                .and_then(|completion| self.run(&app, completion).map_err(|error| error.to_string()));
            if let Err(error) = stored {
                tracing::warn!("a chat completion could not be stored: {error}");
            }
        });
    }
}
