//! Resolves a file: its download URL, length and hash, from a HEAD request that is not followed to the store.

use reqwest::header::{CONTENT_LENGTH, ETAG, HeaderMap};
use reqwest::{Method, Url};

use crate::address::{Repository, is_commit};
use crate::client::Client;
use crate::error::HubError;
use crate::gate::Purpose;
use crate::http_error::{RequestError, response_error};
use crate::sha::Hash;
use crate::url::{MAX_REDIRECTS, host};

/// A file of the hub, as of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedFile {
    /// Download URL; signed URLs of stores expire.
    pub location: Url,
    pub bytes: u64,
    pub sha256: Option<Hash>,
    /// Entity tag of the content.
    pub tag: Option<String>,
    pub commit: Option<String>,
}

/// Facts collected from the headers along redirects.
#[derive(Default)]
struct HeadFacts {
    bytes: Option<u64>,
    tag: Option<String>,
    commit: Option<String>,
}

/// Resolves a file with HEAD requests.
pub(crate) async fn resolve(
    client: &Client,
    repository: &Repository,
    revision: &str,
    path: &str,
) -> Result<ResolvedFile, RequestError> {
    let Repository { owner, name } = repository;
    let mut segments = vec![owner.as_str(), name, "resolve", revision];
    segments.extend(path.split('/'));
    let mut url = client.hub.join(&segments);
    let mut facts = HeadFacts::default();
    for _ in 0..MAX_REDIRECTS {
        let answer = client.send(Method::HEAD, &url, HeaderMap::new(), Purpose::Fetch).await;
        let response = answer.map_err(RequestError::from_unanswered)?;
        let headers = response.headers();
        facts.read(headers);
        if response.status().is_redirection() {
            let next = client.hub.redirect_target(&url, headers).map_err(RequestError::Permanent)?;
            // Stop before the store: it may not support HEAD, and must not receive the token.
            let is_store = headers.contains_key("x-linked-size") || headers.contains_key("x-linked-etag");
            if is_store || !client.hub.is_own(&next) {
                return facts.resolved_at(next);
            }
            url = next;
            continue;
        }
        if !response.status().is_success() {
            return Err(response_error(&client.hub, client.has_token(), Some(repository), &response));
        }
        if facts.bytes.is_none() {
            facts.bytes = number(headers, CONTENT_LENGTH.as_str());
        }
        if facts.tag.is_none() {
            facts.tag = text(headers, ETAG.as_str());
        }
        return facts.resolved_at(url);
    }
    Err(RequestError::Permanent(HubError::bad_response(&host(&url), "it redirects in circles")))
}

impl HeadFacts {
    fn read(&mut self, headers: &HeaderMap) {
        self.bytes = self.bytes.or_else(|| number(headers, "x-linked-size"));
        self.tag = self.tag.take().or_else(|| text(headers, "x-linked-etag"));
        self.commit = self.commit.take().or_else(|| text(headers, "x-repo-commit").filter(|c| is_commit(c)));
    }

    fn resolved_at(self, location: Url) -> Result<ResolvedFile, RequestError> {
        let Some(bytes) = self.bytes else {
            return Err(RequestError::Permanent(HubError::bad_response(
                &host(&location),
                "it doesn't say how long the file is",
            )));
        };
        let tag = self.tag.map(|tag| bare_tag(&tag).to_owned()).filter(|tag| !tag.is_empty());
        let sha256 = tag.as_deref().and_then(Hash::parse);
        Ok(ResolvedFile { location, bytes, sha256, tag, commit: self.commit })
    }
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    text(headers, name)?.trim().parse().ok()
}

/// An entity tag without quotes and weakness prefix.
fn bare_tag(tag: &str) -> &str {
    tag.trim().strip_prefix("W/").unwrap_or(tag.trim()).trim_matches('"')
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn headers_of_a_file_are_read() {
        let hash = "ab".repeat(32);
        let mut facts = HeadFacts::default();
        let mut headers = HeaderMap::new();
        headers.insert("x-linked-etag", HeaderValue::from_str(&format!("\"{hash}\"")).unwrap());
        headers.insert("x-linked-size", HeaderValue::from_static("77"));
        headers.insert("x-repo-commit", HeaderValue::from_static("main"));
        facts.read(&headers);
        let resolved = facts.resolved_at(Url::parse("https://cdn.example/b").unwrap()).ok().unwrap();
        assert_eq!((resolved.bytes, resolved.tag.as_deref()), (77, Some(hash.as_str())));
        assert_eq!((resolved.sha256, resolved.commit), (Hash::parse(&hash), None));
        assert_eq!(bare_tag("W/\"x\""), "x");
        assert!(HeadFacts::default().resolved_at(Url::parse("https://cdn.example/b").unwrap()).is_err());
    }
}
