//! `/v1/responses`: answers with state. A response may go on from a stored one, or in a conversation.

mod compact;
mod context;
pub mod items;
mod live;
mod replay;
pub mod request;
mod summary_item;
mod writer;

use std::sync::Arc;

use app::{ApiObject, ApiObjectKind, GenerateArgs};
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use contract::protocol::Prompt;
use serde_json::{Value, json};

use super::answer_values::Identity;
use super::fields::Result;
use super::pages::{ListOrder, ListQuery, page};
use super::turn_set::TurnSet;
use super::{answered, answering_model, blocking, no_such, now_s, ok};
use crate::RouteState;
use crate::fault::OpenAiFault;
use crate::guard::CallerState;
use crate::owner::ObjectOwner;
use crate::stream::{CancelOnDrop, Sse, named_event};
use crate::url_parts::{Path, Query};
pub use compact::compact;
use context::{ResponseRecord, items_before};
use items::Messages;
use live::LiveResponse;
pub use live::Responses;
use replay::replay;
use request::{ResponseRequest, ResponseState};
use writer::ResponseWriter;

const KIND: ApiObjectKind = ApiObjectKind::Response;

/// Handles `POST /v1/responses`.
pub async fn create(CallerState(shared): CallerState, owner: ObjectOwner, body: Body) -> Response {
    answered(body, |body| async move { answer(shared, owner, &body).await }).await
}

/// A request with its model and the messages that its items become.
struct PreparedRequest {
    request: ResponseRequest,
    model: String,
    args: GenerateArgs,
}

async fn prepared(shared: &RouteState, owner: &ObjectOwner, body: &[u8]) -> Result<PreparedRequest> {
    let mut request = ResponseRequest::parse(body)?;
    let before = items_before(shared.app.clone(), owner.0.to_string(), request.state.clone()).await?;
    request.input = items::resolve(std::mem::take(&mut request.input), &before)?;
    let all: Vec<Value> = before.into_iter().chain(request.input.iter().cloned()).collect();
    let messages = Messages::of(request.instructions.as_deref(), &all)?;
    let model = answering_model(shared.app.clone(), request.model.clone()).await?.id;
    let args =
        GenerateArgs { model: Some(model.clone()), prompt: Prompt::Chat(messages), ..request.args.clone() };
    Ok(PreparedRequest { request, model, args })
}

async fn answer(shared: RouteState, owner: ObjectOwner, body: &[u8]) -> Result<Response> {
    let PreparedRequest { request, model, args } = prepared(&shared, &owner, body).await?;
    let mut turns = TurnSet::start(shared.app.clone(), vec![args]).await.map_err(about_input)?;
    let turn = turns.first_turn().to_owned();
    let identity = Identity { id: format!("resp_{}", turn.replace('-', "")), created: now_s(), model };
    let mut writer = ResponseWriter::new(&identity, request.echo, request.shape);
    let conversation = match request.state {
        ResponseState::Conversation(id) => Some(id),
        ResponseState::None | ResponseState::Previous(_) => None,
    };
    let is_stored = request.is_stored;
    let record = ResponseRecord { owner: owner.0.to_string(), input: request.input, is_stored, conversation };
    if request.is_background {
        writer.set_status("queued");
        let (app, queued, response) = (shared.app.clone(), record.clone(), writer.snapshot());
        blocking(move || queued.save(&app, &response)).await?;
        let response = writer.snapshot();
        let live = shared.responses.run(shared.app.clone(), turns, Vec::new(), writer, record);
        return Ok(if request.stream { stream(&shared, &live, 0, None) } else { ok(&response) });
    }
    // Wait for the model to accept the prompt, so that a rejected one still gets an error status.
    let begun = turns.until_accepted().await.map_err(about_input)?;
    let guard = CancelOnDrop::new(shared.app.clone(), turn);
    let live = shared.responses.run(shared.app.clone(), turns, begun, writer, record);
    if request.stream {
        return Ok(stream(&shared, &live, 0, Some(guard)));
    }
    live.ended().await;
    drop(guard);
    match live.fault() {
        Some(fault) => Err(about_input(fault)),
        None => Ok(ok(&live.snapshot())),
    }
}

/// Attributes a length error to `input` instead of `messages`.
fn about_input(fault: OpenAiFault) -> OpenAiFault {
    match fault.param.as_deref() {
        Some("messages") => OpenAiFault { param: Some("input".into()), ..fault },
        Some(_) | None => fault,
    }
}

/// A stream of a response's events after the first `n_seen`. `guard` cancels it when the client leaves.
fn stream(shared: &RouteState, live: &LiveResponse, n_seen: u64, guard: Option<CancelOnDrop>) -> Response {
    let write = move |events: Option<Vec<Arc<Value>>>| {
        let _guard = &guard;
        events.unwrap_or_default().iter().map(|event| named_event(event)).collect()
    };
    Sse::new(live.watch(n_seen), write, &shared.stopping, false).into_response()
}

/// Handles `POST /v1/responses/input_tokens`.
pub async fn input_tokens(CallerState(shared): CallerState, owner: ObjectOwner, body: Body) -> Response {
    answered(body, |body| async move {
        let PreparedRequest { model, args, .. } = prepared(&shared, &owner, &body).await?;
        let counted =
            blocking(move || shared.app.prompt_count(Some(model), args)).await.map_err(about_input)?;
        Ok(ok(&json!({ "object": "response.input_tokens", "input_tokens": counted.tokens })))
    })
    .await
}

async fn stored(shared: &RouteState, owner: &ObjectOwner, id: &str) -> Result<ApiObject> {
    // Looked up first: one that ends meanwhile is in both places.
    let live = shared.responses.get(&owner.0, id);
    let (app, name, wanted) = (shared.app.clone(), owner.0.clone(), id.to_owned());
    let found = blocking(move || app.api_object(KIND, &name, &wanted)).await?;
    let mut object = found.ok_or_else(|| no_such("response", id))?;
    let response = &mut object.body["response"];
    match (matches!(response["status"].as_str(), Some("queued" | "in_progress")), live) {
        (true, Some(live)) => *response = live.snapshot(),
        // No turn works on it any more.
        (true, None) => {
            response["status"] = json!("failed");
            response["error"] = json!({ "code": "server_error", "message": "The server stopped before the response was complete." });
        }
        (false, _) => {}
    }
    Ok(object)
}

/// Handles `GET /v1/responses/{id}`, at once or as a stream of its events.
pub async fn one(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Path(id): Path<String>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    read_one(shared, owner, &id, &pairs).await.unwrap_or_else(IntoResponse::into_response)
}

async fn read_one(
    shared: RouteState,
    owner: ObjectOwner,
    id: &str,
    pairs: &[(String, String)],
) -> Result<Response> {
    let get = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let starting_after: Option<u64> = match get("starting_after") {
        None => None,
        Some(number) => Some(number.parse().map_err(|_| {
            OpenAiFault::invalid("starting_after", "`starting_after` must be the number of an event.")
        })?),
    };
    let n_seen = starting_after.map_or(0, |number| number.saturating_add(1));
    let object = stored(&shared, &owner, id).await?;
    let live = shared.responses.get(&owner.0, id);
    match (get("stream") == Some("true"), live) {
        (true, Some(live)) => Ok(stream(&shared, &live, n_seen, None)),
        (true, None) => {
            let skipped = usize::try_from(n_seen).unwrap_or(usize::MAX);
            let events = replay(&object.body["response"]);
            let text: String = events.iter().skip(skipped).map(named_event).collect();
            let headers = [(axum::http::header::CONTENT_TYPE, "text/event-stream; charset=utf-8")];
            Ok((headers, text).into_response())
        }
        (false, _) => Ok(ok(&object.body["response"])),
    }
}

/// Handles `DELETE /v1/responses/{id}`. A running one is cancelled.
pub async fn delete(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Path(id): Path<String>,
) -> Response {
    let live = shared.responses.get(&owner.0, &id);
    let (app, owner, wanted) = (shared.app.clone(), owner.0.clone(), id.clone());
    let removed = async {
        if let Some(live) = &live {
            cancel_turn(&shared, live).await?;
            live.ended().await;
        }
        blocking(move || app.remove_api_object(KIND, &owner, &wanted)).await
    };
    match removed.await {
        Ok(true) => {
            shared.responses.forget(&id);
            ok(&json!({ "id": id, "object": "response", "deleted": true }))
        }
        Ok(false) => no_such("response", &id).into_response(),
        Err(fault) => fault.into_response(),
    }
}

async fn cancel_turn(shared: &RouteState, live: &LiveResponse) -> Result<()> {
    let (app, turn) = (shared.app.clone(), live.turn.clone());
    blocking(move || app.turn_cancel(&turn)).await
}

/// Handles `POST /v1/responses/{id}/cancel`.
pub async fn cancel(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Path(id): Path<String>,
) -> Response {
    let cancelled = async {
        let object = stored(&shared, &owner, &id).await?;
        if object.body["response"]["background"] != true {
            return Err(OpenAiFault {
                status: StatusCode::CONFLICT,
                ..OpenAiFault::invalid(None, "Only responses with `background` can be cancelled.")
            });
        }
        let Some(live) = shared.responses.get(&owner.0, &id).filter(|live| !live.is_over()) else {
            return Ok(ok(&object.body["response"]));
        };
        cancel_turn(&shared, &live).await?;
        live.ended().await;
        Ok(ok(&live.snapshot()))
    };
    cancelled.await.unwrap_or_else(IntoResponse::into_response)
}

/// Handles `GET /v1/responses/{id}/input_items`.
pub async fn input_items(
    CallerState(shared): CallerState,
    owner: ObjectOwner,
    Path(id): Path<String>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let listed = async {
        let query = ListQuery::parse(&pairs)?;
        let object = stored(&shared, &owner, &id).await?;
        let items = object.body["input"].as_array().cloned().unwrap_or_default();
        Ok(ok(&page(items, &query, ListOrder::Desc)))
    };
    listed.await.unwrap_or_else(|fault: OpenAiFault| fault.into_response())
}
