//! Addresses of proxies, as the setting has them.

use contract::{Error, Result};

/// What a proxy may speak.
const SCHEMES: [&str; 5] = ["http", "https", "socks4", "socks5", "socks5h"];

/// A checked address: scheme and host, perhaps a name with a password, and a port.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyAddress(String);

impl ProxyAddress {
    /// Checks an address. One without a scheme speaks HTTP. Blank: no proxy.
    ///
    /// Errors: `network.proxy`.
    pub fn parse(text: &str) -> Result<Option<Self>> {
        let text = text.trim().trim_end_matches('/');
        if text.is_empty() {
            return Ok(None);
        }
        let wrong = |why: &str| {
            let message = format!("This is not a valid address of a proxy: {why}.");
            Error::input(
                "network.proxy",
                message,
                "Enter an address such as http://proxy.example:8080 or socks5://proxy.example:1080.",
            )
        };
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let scheme = scheme.to_ascii_lowercase();
        if !SCHEMES.contains(&scheme.as_str()) {
            return Err(wrong("it begins with none of http, https, socks4, socks5 and socks5h"));
        }
        if rest.contains(['/', '?', '#', '\\']) || rest.contains(char::is_whitespace) {
            return Err(wrong("it has more than a host and a port"));
        }
        let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
        let (host, port) = match place.strip_prefix('[').map(|inner| inner.split_once(']')) {
            Some(Some((host, port))) => (host, port),
            Some(None) => return Err(wrong("a bracket is missing")),
            None => place.find(':').map_or((place, ""), |at| place.split_at(at)),
        };
        if host.is_empty() {
            return Err(wrong("it has no host name"));
        }
        let is_port = |text: &str| text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
        if !port.is_empty() && !is_port(port) {
            return Err(wrong("the port is no number up to 65535"));
        }
        Ok(Some(Self(format!("{scheme}://{rest}"))))
    }

    /// The whole address, for a client.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Host and port, as errors name it.
    pub fn place(&self) -> &str {
        let rest = self.0.split_once("://").map_or(self.0.as_str(), |(_, rest)| rest);
        rest.rsplit_once('@').map_or(rest, |(_, place)| place)
    }
}

impl std::fmt::Debug for ProxyAddress {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ProxyAddress({})", self.place())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked() {
        let cases = [
            ("http://proxy:8080/", "http://proxy:8080", "proxy:8080"),
            (" proxy.example:3128 ", "http://proxy.example:3128", "proxy.example:3128"),
            ("SOCKS5://[::1]:1080", "socks5://[::1]:1080", "[::1]:1080"),
            ("https://me:p@ss@proxy", "https://me:p@ss@proxy", "proxy"),
        ];
        for (text, address, place) in cases {
            let proxy = ProxyAddress::parse(text).unwrap().unwrap();
            assert_eq!((proxy.as_str(), proxy.place()), (address, place), "{text}");
        }
        assert!(ProxyAddress::parse("  ").unwrap().is_none());
        for wrong in [
            "ftp://proxy",
            "http://",
            "http://:8080",
            "http://proxy:port",
            "proxy:99999",
            "http://[::1",
            "a b",
            "http://proxy/x",
        ] {
            assert_eq!(ProxyAddress::parse(wrong).unwrap_err().code(), "network.proxy", "{wrong}");
        }
    }

    #[test]
    fn no_password_is_shown() {
        let proxy = ProxyAddress::parse("http://me:secret@proxy:1").unwrap().unwrap();
        assert_eq!(format!("{proxy:?}"), "ProxyAddress(proxy:1)");
    }
}
