//! Requests of a sign-in: through the gate, within limits of bytes and time. Never follows a redirect to another
//! origin, and none at all where a secret is sent. Only HTTPS, or this computer for a server of this computer.

use std::pin::Pin;
use std::time::Duration;

use oauth2::{AsyncHttpClient, HttpRequest, HttpResponse};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Request, Response, Url};
use serde_json::{Map, Value};

use super::fault::SignInFault;
use crate::http_client::{cause, client, is_event_stream};
use crate::redirects::{MAX_REDIRECTS, location, redirect_within};
use crate::{ServerUrl, client_info};
use contract::types::ConnectionPurpose;
use contract::{Error, Result};
use net::ConnectionGate;

/// Largest response: metadata of large servers has some ten thousand bytes.
const MAX_RESPONSE_BYTES: usize = 256 << 10;
/// A response that takes longer is not coming. The user waits for it.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

/// What is done with redirects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RedirectPolicy {
    WithinOrigin,
    Refuse,
}

/// Sends the requests of a sign-in to one server's authorization.
#[derive(Clone)]
pub struct GatedHttp {
    gate: ConnectionGate,
    /// Of the tool server, for errors.
    name: String,
    /// The tool server runs on this computer.
    is_here: bool,
}

/// A response that was read to its end.
pub struct BoundedResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl BoundedResponse {
    /// Its JSON object. None: there is no such thing.
    pub fn object(&self) -> Option<Map<String, Value>> {
        serde_json::from_slice(&self.body).ok()
    }
}

impl GatedHttp {
    pub fn new(gate: ConnectionGate, name: &str, server: &ServerUrl) -> Self {
        Self { gate, name: name.to_owned(), is_here: server.is_here }
    }

    /// The error of this sign-in.
    pub fn fault(&self, fault: SignInFault, detail: &str) -> Error {
        fault.error(&self.name, detail)
    }

    /// Checks an address of the authorization server.
    ///
    /// Errors: `tools.sign_in_malformed`, `tools.sign_in_insecure`.
    pub fn check_url(&self, text: &str) -> Result<ServerUrl> {
        let malformed = |_| self.fault(SignInFault::Malformed, &format!("\"{text}\" is not an address"));
        let url = ServerUrl::parse(text).map_err(malformed)?;
        // A remote server must not have us reach programs of this computer.
        let is_safe = if url.is_here { self.is_here } else { url.url.scheme() == "https" };
        if !is_safe {
            return Err(self.fault(SignInFault::Insecure, url.url.as_str()));
        }
        Ok(url)
    }

    /// Fetches a JSON document. None: there is none at this address.
    pub async fn fetch_json(&self, url: &Url) -> Result<Option<Map<String, Value>>> {
        let mut request = Request::new(Method::GET, url.clone());
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert("mcp-protocol-version", HeaderValue::from_static("2025-11-25"));
        let response = self.send(request, RedirectPolicy::WithinOrigin).await?;
        Ok(response.object().filter(|_| response.status == 200))
    }

    /// Greets a tool server without a token, to see what it demands.
    pub async fn greet_without_token(&self, url: &Url) -> Result<BoundedResponse> {
        let params = serde_json::json!({
            "protocolVersion": crate::REVISION, "capabilities": {}, "clientInfo": client_info()
        });
        let message =
            serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let mut request = json_request(url, message.to_string());
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        request.headers_mut().insert(ACCEPT, accepted);
        self.send(request, RedirectPolicy::WithinOrigin).await
    }

    /// Posts a JSON document, and follows no redirect.
    pub async fn post_json(&self, url: &Url, document: &Value) -> Result<BoundedResponse> {
        let mut request = json_request(url, document.to_string());
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        self.send(request, RedirectPolicy::Refuse).await
    }

    /// Sends a request of the grant, and follows no redirect.
    pub async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse> {
        let request = Request::try_from(request).map_err(Error::bug)?;
        let response = self.send(request, RedirectPolicy::Refuse).await?;
        let mut built = HttpResponse::new(response.body);
        *built.status_mut() = oauth2::http::StatusCode::from_u16(response.status).map_err(Error::bug)?;
        *built.headers_mut() = response.headers;
        Ok(built)
    }

    async fn send(&self, request: Request, policy: RedirectPolicy) -> Result<BoundedResponse> {
        let place = origin_of(request.url());
        let within = tokio::time::timeout(RESPONSE_TIMEOUT, self.send_untimed(request, policy)).await;
        within.unwrap_or_else(|_| {
            let why = format!("{place} did not respond within {} seconds", RESPONSE_TIMEOUT.as_secs());
            Err(self.fault(SignInFault::Unreachable, &why))
        })
    }

    async fn send_untimed(&self, mut request: Request, policy: RedirectPolicy) -> Result<BoundedResponse> {
        let place = ServerUrl::parse(request.url().as_str())?;
        let client = client(&self.gate, place.is_here)?;
        let connection = self.gate.connect(&place.host, ConnectionPurpose::Tool)?;
        for _ in 0..=MAX_REDIRECTS {
            let next = request.try_clone().ok_or_else(|| Error::bug("a request that can't be repeated"))?;
            connection.sent(request.body().and_then(|body| body.as_bytes()).map_or(0, <[u8]>::len));
            let sent = client.execute(request).await;
            let mut response = sent.map_err(|error| {
                self.fault(SignInFault::Unreachable, &format!("{} ({})", place.host, cause(&error)))
            })?;
            if !response.status().is_redirection() {
                return self.read(&mut response, &connection).await;
            }
            let to = redirect_within(&response).filter(|_| policy == RedirectPolicy::WithinOrigin);
            let Some(to) = to else {
                let to = location(&response).map_or_else(|| place.host.clone(), |to| origin_of(&to));
                return Err(self.fault(SignInFault::Moved, &to));
            };
            request = next;
            *request.url_mut() = to;
        }
        Err(self.fault(SignInFault::Moved, &place.host))
    }

    async fn read(&self, response: &mut Response, connection: &net::Connection) -> Result<BoundedResponse> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let place = origin_of(response.url());
        let unreachable = |error: reqwest::Error| {
            self.fault(SignInFault::Unreachable, &format!("{place} ({})", cause(&error)))
        };
        let mut body = Vec::new();
        // A server without sign-in answers a greeting with a stream that may stay open.
        while let Some(bytes) = response.chunk().await.map_err(unreachable)? {
            connection.received(bytes.len());
            body.extend_from_slice(&bytes);
            if body.len() > MAX_RESPONSE_BYTES {
                return Err(self.fault(SignInFault::TooLarge, &place));
            }
            if is_event_stream(response) {
                break;
            }
        }
        Ok(BoundedResponse { status, headers, body })
    }
}

impl<'c> AsyncHttpClient<'c> for GatedHttp {
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.exchange(request))
    }
}

fn json_request(url: &Url, body: String) -> Request {
    let mut request = Request::new(Method::POST, url.clone());
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    *request.body_mut() = Some(body.into());
    request
}

/// Scheme, host and port: what an error may show of an address.
fn origin_of(url: &Url) -> String {
    url.origin().ascii_serialization()
}
