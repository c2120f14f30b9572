//! A server over HTTP: every message is a POST, answered as JSON or as an event stream. Every
//! request passes the gate of `connections.rs` and follows redirects within its origin only. The
//! previous revision's transport (two addresses, `/sse`) is not supported.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

mod access;
mod event_stream;
mod server_url;

pub use event_stream::follow;
pub use server_url::ServerUrl;

use super::core::{Core, words};
use super::{malformed, stateless};
use crate::authorization::TokenSource;
use crate::http_client::{CONNECT_WITHIN, cause, client, is_event_stream};
use crate::param_headers::ParamHeaders;
use crate::redirects::{MAX_REDIRECTS, location, redirect_within};
use contract::types::ConnectionPurpose;
use contract::{Error, ErrorKind, Result};
use documents::lenient_json;
use net::sse::Events;
use net::{Connection, ConnectionGate};
use secrets::Secret;

/// Longest answer: a picture in base64 has some megabytes.
const MAX_BODY_BYTES: usize = 16 << 20;
/// Bytes of a refusal's body that are read.
const MAX_REFUSAL_BYTES: usize = 8 << 10;

const SESSION: &str = "mcp-session-id";
const REVISION: &str = "mcp-protocol-version";

pub struct Http {
    gate: ConnectionGate,
    runtime: Handle,
    client: Client,
    place: ServerUrl,
    headers: HeaderMap,
    tokens: Option<TokenSource>,
    session: Mutex<Session>,
}

#[derive(Default)]
struct Session {
    id: Option<HeaderValue>,
    revision: Option<HeaderValue>,
    /// Where the server has moved within its origin.
    moved: Option<Url>,
    /// Requests on their way.
    running: HashMap<u64, AbortHandle>,
    /// Listens to the server's own stream.
    events: Option<AbortHandle>,
    /// Arguments of calls that headers repeat.
    param_headers: ParamHeaders,
}

impl Http {
    /// Nothing is sent yet. Error: a header that is none.
    pub fn new(
        gate: ConnectionGate,
        runtime: Handle,
        place: ServerUrl,
        headers: &[(String, Secret)],
    ) -> Result<Self> {
        let client = client(&gate, place.is_here)?;
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            let wrong = || {
                let message = format!("The header {name} is not valid.");
                Error::input("tools.header", message, "Check its name and value.")
            };
            let key = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
            let mut value = HeaderValue::try_from(value.reveal()).map_err(|_| wrong())?;
            value.set_sensitive(true);
            all.insert(key, value);
        }
        Ok(Self { gate, runtime, client, place, headers: all, tokens: None, session: Mutex::default() })
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The revision that server and client speak from now on; `None`: it is not yet known.
    pub fn agreed(&self, revision: Option<&str>) {
        self.session().revision = revision.and_then(|revision| HeaderValue::try_from(revision).ok());
    }

    /// Takes over which arguments headers repeat.
    pub fn set_param_headers(&self, headers: ParamHeaders) {
        self.session().param_headers = headers;
    }

    /// Sends a message. What comes of a request (`id`) the core hears.
    pub fn post(this: &Arc<Self>, core: &Arc<Core>, message: Value, id: Option<u64>) {
        let (http, core) = (Arc::clone(this), Arc::clone(core));
        let task = this.runtime.spawn(async move {
            let outcome = Self::exchange(&http, &core, &message, id).await;
            if let Some(id) = id {
                http.session().running.remove(&id);
            }
            match (outcome, id) {
                (Err(error), Some(id)) => core.fail(id, error),
                (Err(error), None) => tracing::debug!("{} was not told: {error}", core.name()),
                (Ok(()), Some(id)) if core.is_waiting(id) => {
                    core.fail(id, malformed(core.name(), "its response was empty"));
                }
                (Ok(()), _) => {}
            }
        });
        if let Some(id) = id {
            let mut session = this.session();
            session.running.retain(|_, task| !task.is_finished());
            session.running.insert(id, task.abort_handle());
        }
    }

    /// Closes the connection of a request.
    pub fn abort(&self, id: u64) {
        // One that has ended needs no closing.
        let _ = self.session().running.remove(&id).map(|task| task.abort());
    }

    /// Tells the server that its session is over, without waiting for what it says to that.
    pub fn end_session(&self) {
        let mut session = self.session();
        session.running.drain().for_each(|(_, task)| task.abort());
        // A session that is over has no stream.
        let _ = session.events.take().map(|task| task.abort());
        let Some(id) = session.id.take() else { return };
        let url = session.moved.clone().unwrap_or_else(|| self.place.url.clone());
        let token = self.tokens.as_ref().and_then(TokenSource::last_header);
        let request = self.client.delete(url).headers(self.headers_with(token));
        let request = request.header(SESSION, id).timeout(CONNECT_WITHIN);
        let Ok(connection) = self.gate.connect(&self.place.host, ConnectionPurpose::Tool) else {
            return;
        };
        self.runtime.spawn(async move {
            // It forgets sessions by itself too.
            let _ = request.send().await;
            drop(connection);
        });
    }

    /// Has a task listen to the server's own stream until the session ends.
    pub fn spawn_events(&self, listening: impl Future<Output = ()> + Send + 'static) {
        let task = self.runtime.spawn(listening).abort_handle();
        let _ = self.session().events.replace(task).map(|before| before.abort());
    }

    /// Opens the server's own stream. `None`: it has none.
    pub async fn open_events(&self, core: &Core, after: Option<&str>) -> Result<Option<EventStream>> {
        let connection = self.gate.connect(&self.place.host, ConnectionPurpose::Tool)?;
        let url = self.session().moved.clone().unwrap_or_else(|| self.place.url.clone());
        let token = self.token().await?;
        let mut request = self.client.get(url).headers(self.headers_with(token));
        request = self.in_session(request.header(ACCEPT, "text/event-stream")).0;
        if let Some(id) = after.and_then(|id| HeaderValue::try_from(id).ok()) {
            request = request.header("last-event-id", id);
        }
        let response = request.send().await.map_err(|error| self.unreachable(core, &error))?;
        let is_stream = response.status().is_success() && is_event_stream(&response);
        Ok(is_stream.then_some(EventStream { response, connection, events: Events::default() }))
    }

    /// Hears the next events. `None`: the stream has ended.
    pub async fn hear_next(this: &Weak<Self>, core: &Arc<Core>, stream: &mut EventStream) -> Option<()> {
        let bytes = stream.response.chunk().await.ok()??;
        stream.connection.received(bytes.len());
        let whole = stream.events.push(&bytes).ok()?;
        let http = this.upgrade()?;
        whole.iter().for_each(|data| Self::hear_event(&http, core, data, None));
        Some(())
    }

    async fn exchange(this: &Arc<Self>, core: &Arc<Core>, message: &Value, id: Option<u64>) -> Result<()> {
        let connection = this.gate.connect(&this.place.host, ConnectionPurpose::Tool)?;
        let token = this.token().await?;
        let sent = this.deliver(core, message, token.clone(), &connection).await?;
        let (response, had_session) = match this.other_token(sent.0.status(), token.as_ref()).await? {
            Some(other) => this.deliver(core, message, Some(other), &connection).await?,
            None => sent,
        };
        if !response.status().is_success() {
            let (status, headers) = (response.status(), response.headers().clone());
            let place = location(&response);
            let body = refusal_body(response, &connection).await;
            let is_denied = matches!(status.as_u16(), 300..=399 | 401 | 403);
            let said = id.filter(|_| !had_session && !is_denied).and_then(|id| rpc_error(&body, id));
            return match said {
                Some(said) => {
                    core.heard(said);
                    Ok(())
                }
                None => Err(this.refused(core, Refusal { status, headers, place, body, had_session }).await),
            };
        }
        if let Some(id) = response.headers().get(SESSION) {
            this.session().id = Some(id.clone());
        }
        Self::listen(this, core, response, &connection, id).await
    }

    /// Sends a message, and follows redirects within the origin. Also returns whether it belongs to a session.
    async fn deliver(
        &self,
        core: &Core,
        message: &Value,
        token: Option<HeaderValue>,
        connection: &Connection,
    ) -> Result<(Response, bool)> {
        let body = message.to_string();
        let mut headers = self.headers_with(token);
        stateless::headers_of(message).into_iter().for_each(|(name, value)| _ = headers.insert(name, value));
        if stateless::is_stateless(message) {
            headers.extend(self.session().param_headers.of(message));
        }
        let mut url = self.session().moved.clone().unwrap_or_else(|| self.place.url.clone());
        let mut sent = self.deliver_to(core, &url, &body, &headers, connection).await?;
        for _ in 0..MAX_REDIRECTS {
            let Some(next) = redirect_within(&sent.0) else { break };
            let is_lasting =
                matches!(sent.0.status(), StatusCode::MOVED_PERMANENTLY | StatusCode::PERMANENT_REDIRECT);
            if is_lasting {
                self.session().moved = Some(next.clone());
            }
            url = next;
            sent = self.deliver_to(core, &url, &body, &headers, connection).await?;
        }
        Ok(sent)
    }

    /// Sends a message with these headers to an address of the server. Also returns whether it belongs to a session.
    async fn deliver_to(
        &self,
        core: &Core,
        url: &Url,
        body: &str,
        headers: &HeaderMap,
        connection: &Connection,
    ) -> Result<(Response, bool)> {
        connection.sent(body.len());
        let mut request = self.client.post(url.clone()).headers(headers.clone());
        request = request.header(CONTENT_TYPE, "application/json");
        request = request.header(ACCEPT, "application/json, text/event-stream");
        let (request, had_session) = self.in_session(request);
        let sent = request.body(body.to_owned()).send().await;
        Ok((sent.map_err(|error| self.unreachable(core, &error))?, had_session))
    }

    /// Adds what was agreed on. Also returns whether there is a session.
    fn in_session(&self, mut request: RequestBuilder) -> (RequestBuilder, bool) {
        let session = self.session();
        if let Some(revision) = &session.revision {
            request = request.header(REVISION, revision);
        }
        if let Some(id) = &session.id {
            request = request.header(SESSION, id);
        }
        (request, session.id.is_some())
    }

    /// Hears what the answer holds.
    async fn listen(
        this: &Arc<Self>,
        core: &Arc<Core>,
        mut response: Response,
        connection: &Connection,
        id: Option<u64>,
    ) -> Result<()> {
        let is_stream = is_event_stream(&response);
        let (mut whole, mut events) = (Vec::new(), Events::default());
        while let Some(bytes) = response.chunk().await.map_err(|error| this.unreachable(core, &error))? {
            connection.received(bytes.len());
            if is_stream {
                for data in events.push(&bytes).map_err(|_| this.too_large(core))? {
                    Self::hear_event(this, core, &data, id);
                }
                // the stream may stay open; no request waits for more of it
                if id.is_some_and(|id| !core.is_waiting(id)) {
                    return Ok(());
                }
            } else {
                whole.extend_from_slice(&bytes);
                if whole.len() > MAX_BODY_BYTES {
                    return Err(this.too_large(core));
                }
            }
        }
        if !is_stream {
            return Self::hear(this, core, &String::from_utf8_lossy(&whole));
        }
        if let Some(data) = events.end() {
            Self::hear_event(this, core, &data, id);
        }
        if let Some(id) = id {
            event_stream::resume(this, core, id, &events).await;
        }
        Ok(())
    }

    /// One broken event of a stream fails the request that it answers. The next events are still heard.
    fn hear_event(this: &Arc<Self>, core: &Arc<Core>, text: &str, id: Option<u64>) {
        let Err(error) = Self::hear(this, core, text) else { return };
        if !core.heard_broken(text, error.message()) {
            tracing::debug!(server = core.name(), ?id, "an event is no message: {error}");
        }
    }

    fn hear(this: &Arc<Self>, core: &Arc<Core>, text: &str) -> Result<()> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let message =
            lenient_json::parse_value(text).map_err(|error| malformed(core.name(), &error.to_string()))?;
        for answer in core.heard(message) {
            let (http, core) = (Arc::clone(this), Arc::clone(core));
            answer.deliver(move |answer| Self::post(&http, &core, answer, None));
        }
        Ok(())
    }

    fn unreachable(&self, core: &Core, error: &reqwest::Error) -> Error {
        let message = format!("{} ({}) can't be reached: {}.", core.name(), self.place.host, cause(error));
        Error::new(
            ErrorKind::Device,
            "tools.unreachable",
            message,
            "Check that the server is running and that its address is correct.",
        )
    }

    fn too_large(&self, core: &Core) -> Error {
        let message = format!("{} sent a message larger than {} MB.", core.name(), MAX_BODY_BYTES >> 20);
        Error::new(ErrorKind::Limit, "tools.too_large", message, "Request less data at once.")
    }

    async fn refused(&self, core: &Core, refusal: Refusal) -> Error {
        let Refusal { status, headers, place, body, had_session } = refusal;
        if let Some(error) = self.sign_in_error(core, status, &headers).await {
            return error;
        }
        let said = words(&String::from_utf8_lossy(&body));
        let quoted = if said.is_empty() { String::from(".") } else { format!(": {said}.") };
        let name = core.name();
        if status == StatusCode::NOT_FOUND && had_session {
            let error = Error::new(
                ErrorKind::Device,
                "tools.gone",
                format!("{name} no longer knows this session."),
                "Try again: a new session is started.",
            );
            core.end(error.clone());
            return error;
        }
        match status.as_u16() {
            401 | 403 => Error::input(
                "tools.key",
                format!("{name} denied access ({status}){quoted}"),
                "Add the header it requires, such as Authorization: Bearer KEY.",
            ),
            300..=399 => Error::input(
                "tools.moved",
                format!(
                    "{name} redirects to another address ({status}){}. Only redirects within one server are followed.",
                    place.map_or_else(String::new, |to| format!(": {to}"))
                ),
                "Enter the new address if you trust it.",
            ),
            404 | 405 => Error::input(
                "tools.no_route",
                format!("There is no tool server at this address of {} ({status}){quoted}", self.place.host),
                "Enter the address of its streamable HTTP transport; it often ends with /mcp. The older SSE transport (/sse) is not supported.",
            ),
            _ => Error::input(
                "tools.refused",
                format!("{name} rejected the request with status {status}{quoted}"),
                "See the documentation of the server.",
            ),
        }
    }
}

/// A response that is no success.
struct Refusal {
    status: StatusCode,
    headers: HeaderMap,
    /// Where it redirects to.
    place: Option<Url>,
    body: Vec<u8>,
    had_session: bool,
}

/// The beginning of a refusal's body.
async fn refusal_body(mut response: Response, connection: &Connection) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(bytes)) = response.chunk().await {
        connection.received(bytes.len());
        body.extend_from_slice(&bytes);
        if body.len() > MAX_REFUSAL_BYTES {
            break;
        }
    }
    body
}

/// The answer to the request `id`, where a body holds an error of JSON-RPC.
fn rpc_error(body: &[u8], id: u64) -> Option<Value> {
    let mut message: Value = serde_json::from_slice(body).ok()?;
    let is_error = message["jsonrpc"] == "2.0" && message["error"]["code"].is_i64();
    message["id"] = id.into();
    Some(message).filter(|_| is_error)
}

impl Drop for Http {
    fn drop(&mut self) {
        let events = self.session.get_mut().unwrap_or_else(PoisonError::into_inner).events.take();
        let _ = events.map(|task| task.abort());
    }
}

/// The server's own stream: what it says without being asked.
pub struct EventStream {
    response: Response,
    connection: Connection,
    events: Events,
}

impl EventStream {
    /// The id of its last event.
    pub fn last_id(&self) -> Option<String> {
        self.events.last_id().map(str::to_owned)
    }

    /// How long the server asks to wait before it is opened again.
    pub fn retry(&self) -> Option<Duration> {
        self.events.retry()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_of_json_rpc_answers_the_request_of_its_status() {
        let error = json!({ "code": -32022, "message": "no", "data": { "supported": ["2026-07-28"] } });
        for id in [json!(7), Value::Null] {
            let body = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string();
            let expected = json!({ "jsonrpc": "2.0", "id": 7, "error": error });
            assert_eq!(rpc_error(body.as_bytes(), 7), Some(expected));
        }
        for other in ["", "Not Found", r#"{"error":{"code":1}}"#, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#] {
            assert_eq!(rpc_error(other.as_bytes(), 7), None, "{other}");
        }
    }
}
