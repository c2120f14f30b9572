//! HTTP client of the hub. The token goes to the hub's own host only; redirects are checked; responses are bounded.

use std::time::Duration;

use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, Response, Url};
use serde_json::Value;

use crate::address::Repository;
use crate::error::{HubError, Result, error_chain};
use crate::gate::{Gate, Permit, Purpose};
use crate::http_error::{RequestError, network_error, response_error, stalled_error};
use crate::url::{HubUrl, MAX_REDIRECTS, host};

/// Address of Hugging Face's own hub.
pub const HUGGING_FACE: &str = "https://huggingface.co";

/// Longest response that is not a model file; pages of lists are far shorter.
const MAX_RESPONSE_BYTES: usize = 32 << 20;

/// Time for name resolution and connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Waits before a list is asked for again.
const RETRY_WAITS: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_millis(600), Duration::from_millis(1800)];

/// Longest wait between retries while a user waits, even if the hub asks for more.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// How to reach a hub.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Address of the hub; None for Hugging Face's own.
    pub endpoint: Option<String>,
    /// Access token.
    pub token: Option<String>,
    /// `User-Agent` header, such as `inglenook/0.1.0`.
    pub user_agent: String,
    /// Longest time without data before a connection counts as stalled.
    pub stall: Duration,
    /// Asked before every request.
    pub gate: Gate,
    /// Proxy that the environment or the user names for this endpoint, as errors name it.
    pub proxy: Option<String>,
    /// Address of the proxy that the user has chosen; None for those of the environment or the system.
    pub proxy_address: Option<String>,
}

/// A client of one hub. Uses the chosen proxy, else those of the environment or the system, and the system's certificates.
pub struct Client {
    http: reqwest::Client,
    pub(crate) hub: HubUrl,
    token: Option<HeaderValue>,
    gate: Gate,
    pub(crate) stall: Duration,
    proxy: Option<String>,
}

/// A response whose body is read in chunks.
pub(crate) struct HubResponse {
    response: Response,
    permit: Permit,
}

impl std::ops::Deref for HubResponse {
    type Target = Response;

    fn deref(&self) -> &Response {
        &self.response
    }
}

impl HubResponse {
    /// Next bytes of the body; None at its end.
    pub async fn chunk(&mut self) -> reqwest::Result<Option<Vec<u8>>> {
        let chunk = self.response.chunk().await?;
        Ok(chunk.map(|bytes| {
            self.permit.received(bytes.len());
            bytes.into()
        }))
    }
}

impl Client {
    /// Errors for an invalid endpoint, or a system without certificates.
    pub fn new(options: ClientOptions) -> Result<Self> {
        let ClientOptions { endpoint, token, user_agent, stall, gate, proxy, proxy_address } = options;
        let text = endpoint.as_deref().map(str::trim).filter(|text| !text.is_empty()).unwrap_or(HUGGING_FACE);
        let wrong = || {
            HubError::new(
                "hub.endpoint",
                format!("\"{text}\" is not a valid Hugging Face address."),
                "Set HF_ENDPOINT to an address such as https://huggingface.co, or leave it empty.",
            )
        };
        let hub = HubUrl::parse(text).ok_or_else(wrong)?;
        let unusable = |why: String| {
            HubError::new(
                "hub.client",
                format!("Downloads are not possible: {why}."),
                "Check the proxy settings and the certificates of the system.",
            )
        };
        let trust = tls::client_config().map_err(|error| unusable(error.to_string()))?;
        let mut builder = reqwest::Client::builder();
        if let Some(address) = &proxy_address {
            let proxy = reqwest::Proxy::all(address).map_err(|error| unusable(error_chain(&error)))?;
            builder = builder.proxy(proxy.no_proxy(reqwest::NoProxy::from_env()));
        }
        let http = builder
            .tls_backend_preconfigured(trust)
            .user_agent(user_agent)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            // HTTP/1 only: each run of a file gets its own connection.
            .http1_only()
            .build()
            .map_err(|error| unusable(error_chain(&error)))?;
        let token = token.and_then(|token| {
            let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        Ok(Self { http, hub, token, gate, stall, proxy })
    }

    /// Host name of the hub.
    pub fn host(&self) -> String {
        self.hub.host()
    }

    /// Whether an access token is set.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Web page of a model.
    pub fn page(&self, repository: &Repository) -> Url {
        self.hub.page(repository)
    }

    /// Sends a request and returns the response head, whatever its status. All requests pass here. Errors if the gate
    /// refuses, or for network failures.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        purpose: Purpose,
    ) -> Result<HubResponse> {
        let permit = self.gate.pass(&host(url), purpose)?;
        let mut request = self.http.request(method, url.clone()).headers(headers);
        // Compressed responses would have different offsets than the file.
        request = request.header(ACCEPT_ENCODING, "identity");
        if let Some(token) = self.token.as_ref().filter(|_| self.hub.is_own(url)) {
            request = request.header(AUTHORIZATION, token.clone());
        }
        match tokio::time::timeout(self.stall, request.send()).await {
            Ok(Ok(response)) => Ok(HubResponse { response, permit }),
            Ok(Err(error)) => Err(self.network_error(url, &error)),
            Err(_) => Err(stalled_error(url, self.stall)),
        }
    }

    fn network_error(&self, url: &Url, error: &reqwest::Error) -> HubError {
        network_error(&host(url), self.proxy.as_deref(), error)
    }

    /// JSON of the hub's API, and the URL of the next page.
    pub(crate) async fn json(&self, url: &Url, about: Option<&Repository>) -> Result<(Value, Option<Url>)> {
        let (bytes, next) = self.bytes(url, about).await.map_err(RequestError::into_error)?;
        let value =
            serde_json::from_slice(&bytes).map_err(|error| HubError::bad_response(&host(url), error))?;
        Ok((value, next))
    }

    /// A small file or response as a whole. Retries a few times, since a user is waiting.
    pub(crate) async fn bytes(
        &self,
        url: &Url,
        about: Option<&Repository>,
    ) -> Result<(Vec<u8>, Option<Url>), RequestError> {
        for wait in RETRY_WAITS {
            let wait = match self.bytes_once(url, about).await {
                Err(RequestError::Busy(_, retry_after)) => retry_after.unwrap_or(wait).min(MAX_WAIT),
                Err(RequestError::Network(_)) => wait,
                ended => return ended,
            };
            tokio::time::sleep(wait).await;
        }
        self.bytes_once(url, about).await
    }

    /// One attempt; follows redirects.
    async fn bytes_once(
        &self,
        url: &Url,
        about: Option<&Repository>,
    ) -> Result<(Vec<u8>, Option<Url>), RequestError> {
        let mut url = url.clone();
        for _ in 0..MAX_REDIRECTS {
            let mut response = self
                .send(Method::GET, &url, HeaderMap::new(), Purpose::Look)
                .await
                .map_err(RequestError::from_unanswered)?;
            if response.status().is_redirection() {
                url = self.hub.redirect_target(&url, response.headers()).map_err(RequestError::Permanent)?;
                continue;
            }
            if !response.status().is_success() {
                return Err(response_error(&self.hub, self.has_token(), about, &response));
            }
            let next = next_page(&url, response.headers()).filter(|next| self.hub.is_own(next));
            let mut bytes = Vec::new();
            loop {
                match tokio::time::timeout(self.stall, response.chunk()).await {
                    Ok(Ok(Some(chunk))) if bytes.len() + chunk.len() <= MAX_RESPONSE_BYTES => {
                        bytes.extend_from_slice(&chunk);
                    }
                    Ok(Ok(Some(_))) => {
                        return Err(RequestError::Permanent(HubError::bad_response(
                            &host(&url),
                            "it is too long",
                        )));
                    }
                    Ok(Ok(None)) => return Ok((bytes, next)),
                    Ok(Err(error)) => return Err(RequestError::Network(self.network_error(&url, &error))),
                    Err(_) => return Err(RequestError::Network(stalled_error(&url, self.stall))),
                }
            }
        }
        Err(RequestError::Permanent(HubError::bad_response(&host(&url), "it redirects in circles")))
    }
}

/// URL of the next page from a `Link: <URL>; rel="next"` header.
fn next_page(base: &Url, headers: &HeaderMap) -> Option<Url> {
    let link = headers.get(reqwest::header::LINK)?.to_str().ok()?;
    let entry = link.split(',').find(|entry| entry.contains("rel=\"next\"") || entry.contains("rel=next"))?;
    let address = entry.split_once('<')?.1.split_once('>')?.0;
    base.join(address).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(endpoint: &str) -> Result<Client> {
        let (token, user_agent) = (Some("hf_x".to_owned()), "test".to_owned());
        let (endpoint, stall) = (Some(endpoint.into()), Duration::from_secs(1));
        let gate = Gate::new(|_, _| Ok(Permit::new(|_| {})));
        Client::new(ClientOptions {
            endpoint,
            token,
            user_agent,
            stall,
            gate,
            proxy: None,
            proxy_address: None,
        })
    }

    #[test]
    fn addresses_are_made_under_the_endpoint_and_the_token_stays_there() {
        let client = client("https://mirror.example/hub/").unwrap();
        let url = client.hub.join(&["api", "models", "a b"]);
        assert_eq!(url.as_str(), "https://mirror.example/hub/api/models/a%20b");
        assert!(client.hub.is_own(&url));
        for other in ["https://cdn.example/x", "http://mirror.example/x", "https://mirror.example:8/x"] {
            assert!(!client.hub.is_own(&Url::parse(other).unwrap()), "{other}");
        }
        for wrong in ["ftp://x", "huggingface.co", "https://"] {
            assert_eq!(super::tests::client(wrong).err().map(|e| e.code()), Some("hub.endpoint"), "{wrong}");
        }
        assert_eq!(super::tests::client("").unwrap().host(), "huggingface.co");
    }

    #[tokio::test]
    async fn a_request_that_the_gate_refuses_is_neither_sent_nor_retried() {
        let n_asked = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let asked = std::sync::Arc::clone(&n_asked);
        let gate = Gate::new(move |host, purpose| {
            asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            assert_eq!(purpose, Purpose::Look);
            Err(HubError::new("network.offline", format!("no {host}"), "Switch it on."))
        });
        let options = ClientOptions {
            // No server listens there: a request that was sent would give another error.
            endpoint: Some("http://127.0.0.1:9".into()),
            token: None,
            user_agent: "test".into(),
            stall: Duration::from_secs(1),
            gate,
            proxy: None,
            proxy_address: None,
        };
        let client = Client::new(options).unwrap();
        let error = client.json(&client.hub.join(&["api"]), None).await.unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), ("network.offline", "no 127.0.0.1:9"));
        assert_eq!(n_asked.load(std::sync::atomic::Ordering::SeqCst), 1);
    }

    #[test]
    fn the_next_page_is_found() {
        let base = Url::parse("https://h/api/models?x=1").unwrap();
        let check = |link: &str, expected: Option<&str>| {
            let headers =
                HeaderMap::from_iter([(reqwest::header::LINK, HeaderValue::from_str(link).unwrap())]);
            assert_eq!(next_page(&base, &headers).map(|url| url.to_string()).as_deref(), expected, "{link}");
        };
        check("<https://h/api/models?cursor=2>; rel=\"next\"", Some("https://h/api/models?cursor=2"));
        check("</p>; rel=\"prev\", </api/models?c=3>; rel=\"next\"", Some("https://h/api/models?c=3"));
        check("</p>; rel=\"prev\"", None);
        check("nonsense; rel=\"next\"", None);
    }
}
