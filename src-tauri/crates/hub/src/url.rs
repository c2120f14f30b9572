//! The hub's address: URLs under it, whether a URL belongs to it, and where redirects may lead.
//!
//! Guarantees that a redirect never leaves the web, never drops encryption, and never reaches into the local network
//! unless the hub itself is there.

use reqwest::Url;
use reqwest::header::{HeaderMap, LOCATION};

use crate::address::Repository;
use crate::error::HubError;

/// Hubs redirect once or twice; more is a loop.
pub(crate) const MAX_REDIRECTS: usize = 6;

/// Base URL of a hub.
#[derive(Debug, Clone)]
pub(crate) struct HubUrl(Url);

impl HubUrl {
    /// Parses an address; None if it is not an http or https URL with a host.
    pub fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok()?;
        (matches!(url.scheme(), "http" | "https") && url.host_str().is_some()).then_some(Self(url))
    }

    /// Host name, with the port if it is not the usual one.
    pub fn host(&self) -> String {
        host(&self.0)
    }

    /// The base URL followed by path segments.
    pub fn join(&self, segments: &[&str]) -> Url {
        let mut url = self.0.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// Web page of a model.
    pub fn page(&self, repository: &Repository) -> Url {
        self.join(&[&repository.owner, &repository.name])
    }

    /// Whether `url` has the hub's own origin: only such URLs receive the token.
    pub fn is_own(&self, url: &Url) -> bool {
        url.origin() == self.0.origin()
    }

    /// Target of a redirect. Errors if it is not a web address, drops encryption, or leads into the local network.
    pub fn redirect_target(&self, from: &Url, headers: &HeaderMap) -> Result<Url, HubError> {
        let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let next = location.and_then(|location| from.join(location).ok());
        let Some(next) = next else {
            return Err(HubError::bad_response(&host(from), "it redirects to nowhere"));
        };
        let is_web = matches!(next.scheme(), "http" | "https") && next.host_str().is_some();
        let is_weaker = from.scheme() == "https" && next.scheme() != "https";
        let is_inward = is_local(&next) && !is_local(&self.0);
        if !is_web || is_weaker || is_inward {
            return Err(HubError::new(
                "hub.redirect",
                format!("{} redirects to {}, where no model should be.", host(from), host(&next)),
                "Check the network that you are in: it may want you to log in first.",
            ));
        }
        Ok(next)
    }
}

/// Host name of a URL, with the port if it is not the usual one.
pub(crate) fn host(url: &Url) -> String {
    let name = url.host_str().unwrap_or_default();
    url.port().map_or(name.to_owned(), |port| format!("{name}:{port}"))
}

/// Whether a URL names this computer or its local network by `localhost` or an IP address.
fn is_local(url: &Url) -> bool {
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
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn urls_are_made_under_the_base() {
        let hub = HubUrl::parse("https://mirror.example/hub/").unwrap();
        let url = hub.join(&["api", "models", "a b"]);
        assert_eq!(url.as_str(), "https://mirror.example/hub/api/models/a%20b");
        assert!(hub.is_own(&url));
        for other in ["https://cdn.example/x", "http://mirror.example/x", "https://mirror.example:8/x"] {
            assert!(!hub.is_own(&Url::parse(other).unwrap()), "{other}");
        }
    }

    #[test]
    fn f29_redirects_stay_where_models_are() {
        let check = |hub: &str, from: &str, to: &str, expected: Option<&str>| {
            let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_str(to).unwrap())]);
            let target = HubUrl::parse(hub).unwrap().redirect_target(&Url::parse(from).unwrap(), &headers);
            assert_eq!(target.ok().map(|url| url.to_string()).as_deref(), expected, "{from} → {to}");
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
}
