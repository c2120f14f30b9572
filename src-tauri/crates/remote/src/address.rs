//! A server's location: a base address as people write it, and the routes derived from it.

use reqwest::Url;

use contract::{Error, Result};

/// A checked base address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Without a slash at its end; `/chat/completions` follows it.
    base: String,
    /// The host's name as the address has it, in brackets where it is an IPv6 address.
    host: String,
    port: Option<u16>,
    is_encrypted: bool,
    is_here: bool,
}

impl Address {
    /// `http://host:8000`, with `/v1` or without. What carries a secret or a question mark is refused.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let wrong = |why: &str| {
            let message = format!("This is not a valid server address: {why}.");
            Err(Error::input(
                "endpoint.address",
                message,
                "Enter an address such as http://192.168.1.20:8000/v1.",
            ))
        };
        let Ok(url) = Url::parse(text) else { return wrong("it can't be read") };
        let is_encrypted = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return wrong("it doesn't start with http:// or https://"),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return wrong("it must not contain a password; enter the key separately");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return wrong("it must not contain ? or #");
        }
        let Some(host) = url.host_str() else { return wrong("it has no host name") };
        let path = url.path().trim_end_matches('/');
        let path = path.strip_suffix("/chat/completions").unwrap_or(path);
        let origin = url.origin().ascii_serialization();
        let base = if path.is_empty() { format!("{origin}/v1") } else { format!("{origin}{path}") };
        Ok(Self { base, host: host.into(), port: url.port(), is_encrypted, is_here: is_loopback(host) })
    }

    /// As it is kept and shown.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// A route of OpenAI's, such as `/models`.
    pub fn route(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// A route outside OpenAI's, such as `/tokenize`.
    pub fn beside(&self, path: &str) -> String {
        format!("{}{path}", self.base.strip_suffix("/v1").unwrap_or(&self.base))
    }

    /// For people and the record: with its port, where it isn't the usual one.
    pub fn place(&self) -> String {
        self.port.map_or_else(|| self.host.clone(), |port| format!("{}:{port}", self.host))
    }

    /// Another program of this computer.
    pub fn is_here(&self) -> bool {
        self.is_here
    }

    /// What is sent can be read on its way.
    pub fn is_readable(&self) -> bool {
        !self.is_encrypted && !self.is_here
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_number = bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    is_number || bare == "localhost" || bare.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_people_write_them() {
        let cases = [
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1", "127.0.0.1:8000", true),
            (" http://LocalHost:11434/ ", "http://localhost:11434/v1", "localhost:11434", true),
            ("http://[::1]:8080/v1/", "http://[::1]:8080/v1", "[::1]:8080", true),
            (
                "https://api.example.org/v1/chat/completions",
                "https://api.example.org/v1",
                "api.example.org",
                false,
            ),
            ("https://example.org/api/v1", "https://example.org/api/v1", "example.org", false),
            ("https://example.org/v1beta/openai/", "https://example.org/v1beta/openai", "example.org", false),
            ("http://192.168.1.20:80", "http://192.168.1.20/v1", "192.168.1.20", false),
            (
                "http://localhost.example.org",
                "http://localhost.example.org/v1",
                "localhost.example.org",
                false,
            ),
        ];
        for (text, base, place, is_here) in cases {
            let address = Address::parse(text).unwrap();
            assert_eq!((address.base(), address.place().as_str(), address.is_here()), (base, place, is_here));
            assert_eq!(Address::parse(address.base()).unwrap(), address, "once more is the same");
        }
        let address = Address::parse("http://h:1/x/v1").unwrap();
        assert_eq!(address.beside("/tokenize"), "http://h:1/x/tokenize");
        assert!(address.is_readable() && !Address::parse("http://127.0.0.1").unwrap().is_readable());
    }

    #[test]
    fn what_is_no_address_is_said_to_be_none() {
        for text in [
            "",
            "lab",
            "ftp://example.org",
            "http://",
            "http://user:secret@example.org",
            "file:///etc/passwd",
            "http://example.org/v1?key=secret",
            "https://example.org/#x",
            "javascript:alert(1)",
        ] {
            let error = Address::parse(text).unwrap_err();
            assert_eq!(error.code(), "endpoint.address", "{text}");
            assert!(!error.message().contains("secret"));
        }
    }
}
