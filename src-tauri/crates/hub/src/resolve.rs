//! Where a file's bytes are, and what they must be: asked of the hub without following it to its stores.

use reqwest::header::{CONTENT_LENGTH, ETAG, HeaderMap, LOCATION};
use reqwest::{Method, Url};

use crate::address::Repository;
use crate::client::{Client, host};
use crate::error::HubError;
use crate::gate::Purpose;
use crate::http_error::{Refused, refused};
use crate::search::is_commit;
use crate::sha::Hash;

/// Hubs send a request on once or twice.
pub(crate) const MOST_REDIRECTS: usize = 6;

/// A file of the hub, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// Signed addresses of stores are valid for a while only.
    pub location: Url,
    pub bytes: u64,
    pub sha256: Option<Hash>,
    /// Names this content.
    pub tag: Option<String>,
    pub commit: Option<String>,
}

#[derive(Default)]
struct Said {
    bytes: Option<u64>,
    tag: Option<String>,
    commit: Option<String>,
}

/// Asks for the head of a file.
pub(crate) async fn resolve(
    client: &Client,
    repository: &Repository,
    revision: &str,
    path: &str,
) -> Result<Resolved, Refused> {
    let Repository { owner, name } = repository;
    let mut segments = vec![owner.as_str(), name, "resolve", revision];
    segments.extend(path.split('/'));
    let mut url = client.url(&segments);
    let mut said = Said::default();
    for _ in 0..MOST_REDIRECTS {
        let answer = client.send(Method::HEAD, &url, HeaderMap::new(), Purpose::Fetch).await;
        let response = answer.map_err(Refused::unanswered)?;
        let headers = response.headers();
        said.hear(headers);
        if response.status().is_redirection() {
            let next = redirected(client, &url, headers).map_err(Refused::For)?;
            // The store is asked for bytes alone: it may not know heads, and its answers need no token.
            let is_store = headers.contains_key("x-linked-size") || headers.contains_key("x-linked-etag");
            if is_store || !client.is_own(&next) {
                return said.at(next);
            }
            url = next;
            continue;
        }
        if !response.status().is_success() {
            return Err(refused(client, Some(repository), &response));
        }
        if said.bytes.is_none() {
            said.bytes = number(headers, CONTENT_LENGTH.as_str());
        }
        if said.tag.is_none() {
            said.tag = text(headers, ETAG.as_str());
        }
        return said.at(url);
    }
    Err(Refused::For(HubError::answer(&host(&url), "it redirects in circles")))
}

impl Said {
    fn hear(&mut self, headers: &HeaderMap) {
        self.bytes = self.bytes.or_else(|| number(headers, "x-linked-size"));
        self.tag = self.tag.take().or_else(|| text(headers, "x-linked-etag"));
        self.commit = self.commit.take().or_else(|| text(headers, "x-repo-commit").filter(|c| is_commit(c)));
    }

    fn at(self, location: Url) -> Result<Resolved, Refused> {
        let Some(bytes) = self.bytes else {
            return Err(Refused::For(HubError::answer(
                &host(&location),
                "it doesn't say how long the file is",
            )));
        };
        let tag = self.tag.map(|tag| bare(&tag).to_owned()).filter(|tag| !tag.is_empty());
        let sha256 = tag.as_deref().and_then(Hash::parse);
        Ok(Resolved { location, bytes, sha256, tag, commit: self.commit })
    }
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    text(headers, name)?.trim().parse().ok()
}

/// An entity tag without its marks.
fn bare(tag: &str) -> &str {
    tag.trim().strip_prefix("W/").unwrap_or(tag.trim()).trim_matches('"')
}

/// Where a redirect leads. Errors: to no web address, out of encryption, or into this computer's neighbourhood.
pub(crate) fn redirected(client: &Client, from: &Url, headers: &HeaderMap) -> Result<Url, HubError> {
    let location = text(headers, LOCATION.as_str());
    let next = location.as_deref().and_then(|location| from.join(location).ok());
    let Some(next) = next else { return Err(HubError::answer(&host(from), "it redirects to nowhere")) };
    let is_web = matches!(next.scheme(), "http" | "https") && next.host_str().is_some();
    let is_weaker = from.scheme() == "https" && next.scheme() != "https";
    let is_inward = is_near(&next) && !is_near(&client.url(&[]));
    if !is_web || is_weaker || is_inward {
        return Err(HubError::new(
            "hub.redirect",
            format!("{} sends us to {}, where no model should be.", host(from), host(&next)),
            "Check the network that you are in: it may want you to log in first.",
        ));
    }
    Ok(next)
}

/// This computer or its local network, by its number.
fn is_near(url: &Url) -> bool {
    let name = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    if name == "localhost" || name.ends_with(".localhost") {
        return true;
    }
    match name.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(ip)) => {
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified()
        }
        Ok(std::net::IpAddr::V6(ip)) => {
            let first = ip.segments()[0];
            ip.is_loopback() || ip.is_unspecified() || first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfe80
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::header::HeaderValue;

    use super::*;
    use crate::client::Options;
    use crate::gate::{Gate, Passage};

    #[test]
    fn redirects_stay_where_models_are() {
        let check = |endpoint: &str, from: &str, to: &str, expected: Option<&str>| {
            let options = Options {
                endpoint: Some(endpoint.into()),
                token: None,
                user_agent: "test".into(),
                stall: Duration::from_secs(1),
                gate: Gate::new(|_, _| Ok(Passage::new(|_| {}))),
            };
            let client = Client::new(options).unwrap();
            let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_str(to).unwrap())]);
            let got =
                redirected(&client, &Url::parse(from).unwrap(), &headers).ok().map(|url| url.to_string());
            assert_eq!(got.as_deref(), expected, "{from} → {to}");
        };
        let hub = "https://hub.example";
        check(hub, "https://hub.example/a", "/b", Some("https://hub.example/b"));
        check(hub, "https://hub.example/a", "https://cdn.example/b", Some("https://cdn.example/b"));
        for to in [
            "http://cdn.example/b",
            "file:///etc/passwd",
            "https://127.0.0.1/b",
            "https://[::1]/b",
            "https://10.0.0.1/",
        ] {
            check(hub, "https://hub.example/a", to, None);
        }
        check(
            "http://127.0.0.1:9",
            "http://127.0.0.1:9/a",
            "http://localhost:8/b",
            Some("http://localhost:8/b"),
        );
    }

    #[test]
    fn what_the_hub_says_of_a_file_is_read() {
        let hash = "ab".repeat(32);
        let mut said = Said::default();
        let mut headers = HeaderMap::new();
        headers.insert("x-linked-etag", HeaderValue::from_str(&format!("\"{hash}\"")).unwrap());
        headers.insert("x-linked-size", HeaderValue::from_static("77"));
        headers.insert("x-repo-commit", HeaderValue::from_static("main"));
        said.hear(&headers);
        let resolved = said.at(Url::parse("https://cdn.example/b").unwrap()).ok().unwrap();
        assert_eq!((resolved.bytes, resolved.tag.as_deref()), (77, Some(hash.as_str())));
        assert_eq!((resolved.sha256, resolved.commit), (Hash::parse(&hash), None));
        assert_eq!(bare("W/\"x\""), "x");
        assert!(Said::default().at(Url::parse("https://cdn.example/b").unwrap()).is_err());
    }
}
