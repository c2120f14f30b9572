//! Requests to the hub: one host that gets the token, redirects followed by hand, answers of bounded length.

use std::time::Duration;

use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, Response, Url};
use serde_json::Value;

use crate::address::Repository;
use crate::error::{HubError, Result};
use crate::gate::{Gate, Passage, Purpose};
use crate::http_error::{Refused, network, refused};

pub const HUGGING_FACE: &str = "https://huggingface.co";

/// Longest answer that is no file of a model: pages of lists are far shorter.
const MOST_ANSWER_BYTES: usize = 32 << 20;

/// For the name to be found and the connection to be made.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Waits before a list is asked for again.
const AGAIN_AFTER: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_millis(600), Duration::from_millis(1800)];

/// A hub may ask for more time; with somebody waiting, no longer than this.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// How to reach a hub.
#[derive(Debug, Clone)]
pub struct Options {
    /// None: Hugging Face's own.
    pub endpoint: Option<String>,
    pub token: Option<String>,
    /// `inglenook/0.1.0`
    pub user_agent: String,
    /// The longest that a server may be silent.
    pub stall: Duration,
    pub gate: Gate,
}

/// A hub. Proxies are the environment's or the system's, certificates the system's.
pub struct Client {
    http: reqwest::Client,
    endpoint: Url,
    token: Option<HeaderValue>,
    gate: Gate,
    pub(crate) stall: Duration,
}

/// What came back: its head at once, its body as it is asked for.
pub(crate) struct Answer {
    response: Response,
    passage: Passage,
}

impl std::ops::Deref for Answer {
    type Target = Response;

    fn deref(&self) -> &Response {
        &self.response
    }
}

impl Answer {
    /// The next bytes. None: that was all.
    pub async fn chunk(&mut self) -> reqwest::Result<Option<Vec<u8>>> {
        let chunk = self.response.chunk().await?;
        Ok(chunk.map(|bytes| {
            self.passage.received(bytes.len());
            bytes.into()
        }))
    }
}

impl Client {
    /// Errors: an endpoint that is no address, a system without certificates.
    pub fn new(options: Options) -> Result<Self> {
        let Options { endpoint, token, user_agent, stall, gate } = options;
        // Another part of the program may have chosen the same already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let text = endpoint.as_deref().map(str::trim).filter(|text| !text.is_empty()).unwrap_or(HUGGING_FACE);
        let wrong = || {
            HubError::new(
                "hub.endpoint",
                format!("\"{text}\" is no address of a hub."),
                "HF_ENDPOINT holds one such as https://huggingface.co, or nothing.",
            )
        };
        let endpoint = Url::parse(text).map_err(|_| wrong())?;
        if !matches!(endpoint.scheme(), "http" | "https") || endpoint.host_str().is_none() {
            return Err(wrong());
        }
        let http = reqwest::Client::builder()
            .user_agent(user_agent)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_WITHIN)
            // Parts of one file come over connections of their own.
            .http1_only()
            .build()
            .map_err(|error| {
                HubError::new(
                    "hub.client",
                    format!("Nothing can be fetched: {}.", chain(&error)),
                    "Check the proxy settings and the system's certificates.",
                )
            })?;
        let token = token.and_then(|token| {
            let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        Ok(Self { http, endpoint, token, gate, stall })
    }

    pub fn host(&self) -> String {
        host(&self.endpoint)
    }

    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// A model's page.
    pub fn page(&self, repository: &Repository) -> Url {
        self.url(&[&repository.owner, &repository.name])
    }

    /// The endpoint with a path.
    pub(crate) fn url(&self, segments: &[&str]) -> Url {
        let mut url = self.endpoint.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// Whether an address is the hub's own: only there goes the token.
    pub(crate) fn is_own(&self, url: &Url) -> bool {
        url.origin() == self.endpoint.origin()
    }

    /// The one way out: the answer's head, whatever its status. Errors: no leave was given, those of the network.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        purpose: Purpose,
    ) -> Result<Answer> {
        let passage = self.gate.pass(&host(url), purpose)?;
        let mut request = self.http.request(method, url.clone()).headers(headers);
        // What is compressed on the way has other places than the file.
        request = request.header(ACCEPT_ENCODING, "identity");
        if let Some(token) = self.token.as_ref().filter(|_| self.is_own(url)) {
            request = request.header(AUTHORIZATION, token.clone());
        }
        match tokio::time::timeout(self.stall, request.send()).await {
            Ok(Ok(response)) => Ok(Answer { response, passage }),
            Ok(Err(error)) => Err(network(&host(url), &error)),
            Err(_) => Err(silent(url, self.stall)),
        }
    }

    /// JSON of the hub's API, and the address of the page that follows it.
    pub(crate) async fn json(&self, url: &Url, about: Option<&Repository>) -> Result<(Value, Option<Url>)> {
        let (bytes, next) = self.bytes(url, about).await.map_err(Refused::into_error)?;
        let value = serde_json::from_slice(&bytes).map_err(|error| HubError::answer(&host(url), error))?;
        Ok((value, next))
    }

    /// A small file or answer, wholly. A hub that is busy is asked again, a few times: somebody waits for it.
    pub(crate) async fn bytes(
        &self,
        url: &Url,
        about: Option<&Repository>,
    ) -> Result<(Vec<u8>, Option<Url>), Refused> {
        for wait in AGAIN_AFTER {
            let wait = match self.bytes_once(url, about).await {
                Err(Refused::Busy(_, told)) => told.unwrap_or(wait).min(LONGEST_WAIT),
                Err(Refused::Network(_)) => wait,
                ended => return ended,
            };
            tokio::time::sleep(wait).await;
        }
        self.bytes_once(url, about).await
    }

    /// Redirects are followed.
    async fn bytes_once(
        &self,
        url: &Url,
        about: Option<&Repository>,
    ) -> Result<(Vec<u8>, Option<Url>), Refused> {
        let mut url = url.clone();
        for _ in 0..crate::resolve::MOST_REDIRECTS {
            let mut response = self
                .send(Method::GET, &url, HeaderMap::new(), Purpose::Look)
                .await
                .map_err(Refused::unanswered)?;
            if response.status().is_redirection() {
                url = crate::resolve::redirected(self, &url, response.headers()).map_err(Refused::For)?;
                continue;
            }
            if !response.status().is_success() {
                return Err(refused(self, about, &response));
            }
            let next = next_page(&url, response.headers()).filter(|next| self.is_own(next));
            let mut bytes = Vec::new();
            loop {
                match tokio::time::timeout(self.stall, response.chunk()).await {
                    Ok(Ok(Some(chunk))) if bytes.len() + chunk.len() <= MOST_ANSWER_BYTES => {
                        bytes.extend_from_slice(&chunk);
                    }
                    Ok(Ok(Some(_))) => {
                        return Err(Refused::For(HubError::answer(&host(&url), "it is too long")));
                    }
                    Ok(Ok(None)) => return Ok((bytes, next)),
                    Ok(Err(error)) => return Err(Refused::Network(network(&host(&url), &error))),
                    Err(_) => return Err(Refused::Network(silent(&url, self.stall))),
                }
            }
        }
        Err(Refused::For(HubError::answer(&host(&url), "it redirects in circles")))
    }
}

pub(crate) fn host(url: &Url) -> String {
    let name = url.host_str().unwrap_or_default();
    url.port().map_or(name.to_owned(), |port| format!("{name}:{port}"))
}

pub(crate) fn silent(url: &Url, stall: Duration) -> HubError {
    HubError::new(
        "hub.silent",
        format!("{} has said nothing for {:.0} seconds.", host(url), stall.as_secs_f64()),
        "It is tried again by itself.",
    )
}

/// An error with what lies under it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// `Link: <ADDRESS>; rel="next"`
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
        let gate = Gate::new(|_, _| Ok(Passage::new(|_| {})));
        Client::new(Options { endpoint, token, user_agent, stall, gate })
    }

    #[test]
    fn addresses_are_made_under_the_endpoint_and_the_token_stays_there() {
        let client = client("https://mirror.example/hub/").unwrap();
        let url = client.url(&["api", "models", "a b"]);
        assert_eq!(url.as_str(), "https://mirror.example/hub/api/models/a%20b");
        assert!(client.is_own(&url));
        for other in ["https://cdn.example/x", "http://mirror.example/x", "https://mirror.example:8/x"] {
            assert!(!client.is_own(&Url::parse(other).unwrap()), "{other}");
        }
        for wrong in ["ftp://x", "huggingface.co", "https://"] {
            assert_eq!(super::tests::client(wrong).err().map(|e| e.code()), Some("hub.endpoint"), "{wrong}");
        }
        assert_eq!(super::tests::client("").unwrap().host(), "huggingface.co");
    }

    #[tokio::test]
    async fn what_the_gate_refuses_is_not_sent_and_not_asked_again() {
        let n_asked = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let asked = std::sync::Arc::clone(&n_asked);
        let gate = Gate::new(move |host, purpose| {
            asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            assert_eq!(purpose, Purpose::Look);
            Err(HubError::new("network.offline", format!("no {host}"), "Switch it on."))
        });
        let options = Options {
            // nobody listens there: what was sent all the same would be another error
            endpoint: Some("http://127.0.0.1:9".into()),
            token: None,
            user_agent: "test".into(),
            stall: Duration::from_secs(1),
            gate,
        };
        let client = Client::new(options).unwrap();
        let error = client.json(&client.url(&["api"]), None).await.unwrap_err();
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
