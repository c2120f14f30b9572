//! llama.cpp's own routes: completions of raw prompts, tokens and their texts, rendered prompts, properties.

mod fault;
pub mod request;
mod response;
mod vocabulary;

use app::App;
use axum::Router;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use contract::Result;
use contract::protocol::{GapText, Prompt, PromptPart, SpecialTokens, TokenPiece};
use serde_json::{Value, json};

use crate::RouteState;
use crate::body::read;
use crate::fault::json_response;
use crate::guard::CallerState;
use crate::request_fields::{RequestFields, invalid, object};
use crate::running_turn::{RunningTurn, blocking};
use fault::LlamaCppFault;
use request::{BiasTarget, LlamaCppRequest, token_biases};
use response::{CompletionCollector, CompletionHead, PieceWriter, settings};

pub fn routes() -> Router<RouteState> {
    Router::new()
        .route("/completion", post(completion))
        .route("/completions", post(completion))
        .route("/infill", post(infill))
        .route("/tokenize", post(vocabulary::tokenize))
        .route("/detokenize", post(vocabulary::detokenize))
        .route("/apply-template", post(vocabulary::apply_template))
        .route("/props", get(vocabulary::props))
        .route("/slots", get(slots))
}

/// Handles `GET /slots`: requests are scheduled in batches of any size, and there is nothing to list.
async fn slots() -> Response {
    let message = "This server has no slots: requests share each pass over the weights. \
                   /props has the number of answers at once.";
    let error = json!({ "code": 501, "message": message, "type": "not_supported_error" });
    json_response(StatusCode::NOT_IMPLEMENTED, &json!({ "error": error }))
}

/// Handles `POST /completion` and `POST /completions`.
async fn completion(CallerState(shared): CallerState, body: Body) -> Response {
    let body = match read(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let answered = async { answer(&shared, LlamaCppRequest::parse(&body)?, None).await };
    answered.await.unwrap_or_else(|error| LlamaCppFault::from(error).into_response())
}

/// Handles `POST /infill`.
async fn infill(CallerState(shared): CallerState, body: Body) -> Response {
    let body = match read(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let answered = async {
        let object = object(&body)?;
        let fields = RequestFields(&object);
        let gap = gap(fields)?;
        answer(&shared, LlamaCppRequest::with_prompts(fields, vec![Vec::new()], false)?, Some(gap)).await
    };
    answered.await.unwrap_or_else(|error| LlamaCppFault::from(error).into_response())
}

/// The text around a gap. `prompt` is what has been written in it already.
fn gap(fields: RequestFields) -> Result<GapText> {
    let prefix = fields.text("input_prefix")?.ok_or_else(|| invalid("`input_prefix` is required."))?;
    let suffix = fields.text("input_suffix")?.ok_or_else(|| invalid("`input_suffix` is required."))?;
    let prompt = fields.text("prompt")?.unwrap_or_default();
    let file = |value: &Value| {
        let file =
            value.as_object().map(RequestFields).ok_or_else(|| invalid("`input_extra` needs objects."))?;
        let text = file.text("text")?.ok_or_else(|| invalid("`input_extra.text` is required."))?;
        Ok((file.text("filename")?.unwrap_or("tmp").to_owned(), text.to_owned()))
    };
    let files = fields.list("input_extra")?.map(Vec::as_slice).unwrap_or_default();
    Ok(GapText {
        prefix: format!("{prefix}{prompt}"),
        suffix: suffix.into(),
        files: files.iter().map(file).collect::<Result<_>>()?,
    })
}

/// One prompt of a request, ready for the model.
struct PreparedCompletion {
    head: CompletionHead,
    args: app::GenerateArgs,
}

async fn answer(shared: &RouteState, request: LlamaCppRequest, gap: Option<GapText>) -> Result<Response> {
    let (stream, is_list) = (request.stream, request.is_list);
    let app = shared.app.clone();
    let prepared = blocking(move || prepare(&app, request, gap)).await?;
    let mut running = Vec::with_capacity(prepared.len());
    for PreparedCompletion { head, args } in prepared {
        let turn = RunningTurn::start(shared.app.clone(), Some(head.model.clone()), args).await?;
        running.push((turn, head));
    }
    if stream && let Some((mut turn, head)) = running.pop() {
        let before = turn.until_accepted().await?;
        let body = turn.into_body(before, PieceWriter::new(head), shared);
        let headers =
            [(header::CONTENT_TYPE, "text/event-stream; charset=utf-8"), (header::CACHE_CONTROL, "no-store")];
        return Ok((StatusCode::OK, headers, body).into_response());
    }
    let mut answers = Vec::with_capacity(running.len());
    for (mut turn, head) in running {
        let mut whole = CompletionCollector::default();
        while let Some(events) = turn.next().await {
            events.into_iter().try_for_each(|kind| whole.take(kind, &head))?;
        }
        answers.push(whole.into_value(&head)?);
    }
    let body = match (is_list, answers.pop()) {
        (false, Some(answer)) => answer,
        (_, last) => answers.into_iter().chain(last).collect(),
    };
    Ok(json_response(StatusCode::OK, &body))
}

/// Turns texts into tokens: those of the prompts, and those that are to be more or less likely.
fn prepare(app: &App, request: LlamaCppRequest, gap: Option<GapText>) -> Result<Vec<PreparedCompletion>> {
    let LlamaCppRequest { model, prompts, mut args, biases, format, .. } = request;
    let model = app.model_for_request(model.as_deref())?.id;
    let mut targets = Vec::with_capacity(biases.len());
    for (target, bias) in biases {
        let tokens = match target {
            BiasTarget::Token(token) => vec![token],
            BiasTarget::Text(text) => {
                ids(&app.tokenize(&model, vec![PromptPart::Text(text)], SpecialTokens::Without, false)?)
            }
        };
        targets.push((tokens, bias));
    }
    if !targets.is_empty() {
        args.sampling.logit_bias = Some(token_biases(targets.into_iter()));
    }
    let sampling = app.effective_sampling(&args.sampling)?;
    let settings =
        settings(&sampling, app.effective_max_tokens(args.max_tokens)?, &args.stop, format.n_probs);
    let prompts = prompts.into_iter().enumerate().map(|(index, parts)| {
        let tokens = match &gap {
            Some(gap) => app.fill_in_prompt(&model, gap.clone())?,
            None => app.tokenize(&model, parts, SpecialTokens::Before, true)?,
        };
        let head = CompletionHead {
            model: model.clone(),
            index,
            prompt: String::from_utf8_lossy(
                &tokens.iter().flat_map(|it| it.bytes.clone()).collect::<Vec<_>>(),
            )
            .into_owned(),
            stop: args.stop.clone(),
            settings: settings.clone(),
            format: format.clone(),
        };
        // Without a token, the prompt begins as raw texts do.
        let prompt = match tokens.is_empty() {
            true => Prompt::Raw(String::new()),
            false => Prompt::Ids(ids(&tokens)),
        };
        let args = app::GenerateArgs { prompt, ..args.clone() };
        Ok(PreparedCompletion { head, args })
    });
    prompts.collect()
}

fn ids(tokens: &[TokenPiece]) -> Vec<u32> {
    tokens.iter().map(|token| token.id).collect()
}
