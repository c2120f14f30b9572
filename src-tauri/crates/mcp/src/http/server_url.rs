//! Addresses of tool servers over HTTP.

use reqwest::Url;

use contract::{Error, Result};

/// A checked address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl {
    pub(crate) url: Url,
    pub(crate) host: String,
    pub(crate) is_here: bool,
}

impl ServerUrl {
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            let message = format!("This is not a valid URL for a tool server: {why}.");
            Error::input("tools.address", message, "Enter a URL such as https://example.org/mcp.")
        };
        let url = Url::parse(text.trim()).map_err(|_| wrong("it can't be read"))?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(wrong("it doesn't start with http:// or https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("it must not contain a password; use a header instead"));
        }
        let host = url.host_str().ok_or_else(|| wrong("it has no host name"))?;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let is_loopback = bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        let is_here = is_loopback || bare == "localhost" || bare.ends_with(".localhost");
        let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Ok(Self { url, host, is_here })
    }

    /// Another program of this computer.
    pub fn is_here(&self) -> bool {
        self.is_here
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked() {
        let here = |text: &str| ServerUrl::parse(text).map(|place| (place.host, place.is_here)).ok();
        assert_eq!(here("http://localhost:3000/mcp"), Some(("localhost:3000".into(), true)));
        assert_eq!(here(" https://example.org/mcp?x=1 "), Some(("example.org".into(), false)));
        assert_eq!(here("http://[::1]:5/mcp"), Some(("[::1]:5".into(), true)));
        for wrong in ["", "example.org", "ftp://example.org", "http://me:secret@example.org"] {
            let error = ServerUrl::parse(wrong).unwrap_err();
            assert!(error.message().starts_with("This is not a valid URL"), "{wrong}");
            assert!(!error.message().contains("secret"));
        }
    }
}
