//! Redirects that a message may follow.

use reqwest::header::LOCATION;
use reqwest::{Response, Url};

/// Redirects of one message that are followed: a missing slash at the end takes one.
pub const MAX_REDIRECTS: usize = 5;

/// Where a redirect leads.
pub fn location(response: &Response) -> Option<Url> {
    let to = response.headers().get(LOCATION)?.to_str().ok()?;
    response.url().join(to).ok().filter(|_| response.status().is_redirection())
}

/// Where a redirect leads that keeps the message and stays within the origin: a key goes nowhere else.
pub fn redirect_within(response: &Response) -> Option<Url> {
    let keeps_method = matches!(response.status().as_u16(), 301 | 302 | 307 | 308);
    location(response).filter(|to| keeps_method && is_same_origin(response.url(), to))
}

fn is_same_origin(from: &Url, to: &Url) -> bool {
    let is_anonymous = to.username().is_empty() && to.password().is_none();
    is_anonymous && from.origin() == to.origin()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_within_the_origin() {
        let from = Url::parse("https://example.org/mcp").unwrap();
        for (to, expected) in [
            ("/mcp/", true),
            ("https://example.org:443/other?x=1", true),
            ("http://example.org/mcp", false),
            ("https://example.org:8443/mcp", false),
            ("https://evil.example.org/mcp", false),
            ("//evil.org/mcp", false),
            ("https://me:secret@example.org/mcp", false),
        ] {
            assert_eq!(is_same_origin(&from, &from.join(to).unwrap()), expected, "{to}");
        }
    }
}
