//! Frames in which the page shows HTML and SVG that a model wrote. The page sends the document; the frame writes it into
//! itself.
//!
//! Each frame has a separate policy, because a document inside of the page would inherit the page's. Guarantees an
//! opaque origin and no network, whatever the document says.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::refusal::not_found;
use crate::url_parts::Path;

/// Writes the first document that the page sends into the frame.
const SCRIPT: &str = include_str!("preview/frame.js");

/// SHA-256 of the script: the only one that runs where those of the document do not.
const SCRIPT_HASH: &str = "CkFuIrW7hkUjZrO2QH7Lu7oDzI5hOE/Z2OGtqkBDRyE=";

/// The policy of every frame: it loads, sends and opens nothing, and its origin is opaque.
const COMMON_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; \
                             media-src data: blob:; form-action 'none'; base-uri 'none'; webrtc 'block'; \
                             sandbox allow-scripts";

static BODY: LazyLock<String> = LazyLock::new(|| {
    format!("<!doctype html><meta charset=\"utf-8\"><title>Preview</title><script>{SCRIPT}</script>")
});

/// Which scripts run in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviewFrame {
    /// None of the document.
    Static,
    /// Those that stand in the document.
    Scripts,
}

impl PreviewFrame {
    /// By the last part of its address.
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "static" => Some(Self::Static),
            "scripts" => Some(Self::Scripts),
            _ => None,
        }
    }

    /// Its content security policy.
    pub fn policy(self) -> String {
        let scripts = match self {
            Self::Static => format!("'sha256-{SCRIPT_HASH}'"),
            Self::Scripts => "'unsafe-inline'".to_owned(),
        };
        format!("{COMMON_POLICY}; script-src {scripts}")
    }

    /// The HTML of the empty frame.
    pub fn html(self) -> &'static str {
        &BODY
    }
}

/// Whether a path is that of a frame.
pub fn is_frame(path: &str) -> bool {
    path.strip_prefix("/preview/").is_some_and(|name| PreviewFrame::of_name(name).is_some())
}

pub async fn frame(Path(name): Path<String>) -> Response {
    let Some(frame) = PreviewFrame::of_name(&name) else { return not_found(&name) };
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (header::CONTENT_SECURITY_POLICY, format!("{}; frame-ancestors 'self'", frame.policy())),
        (header::X_DNS_PREFETCH_CONTROL, "off".to_owned()),
        (header::CACHE_CONTROL, "no-cache".to_owned()),
    ];
    (headers, frame.html()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_script() {
        let digits = documents::sha256(SCRIPT);
        let bytes: Vec<u8> = (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
            .collect();
        assert_eq!(documents::base64::encode(&bytes), SCRIPT_HASH);
    }

    #[test]
    fn no_frame_may_load_anything() {
        for name in ["static", "scripts"] {
            let policy = PreviewFrame::of_name(name).unwrap().policy();
            for (directive, expected) in
                [("default-src", "'none'"), ("form-action", "'none'"), ("sandbox", "allow-scripts")]
            {
                let found = policy.split("; ").find_map(|part| part.strip_prefix(directive)).unwrap();
                assert_eq!(found.trim(), expected, "{name}: {directive}");
            }
            assert!(
                !policy.contains("http") && !policy.contains("'self'") && !policy.contains("connect-src")
            );
        }
        assert!(!PreviewFrame::Static.policy().contains("script-src 'unsafe-inline'"));
        assert!(is_frame("/preview/static") && is_frame("/preview/scripts"));
        assert!(!is_frame("/preview/other") && !is_frame("/preview/") && !is_frame("/static"));
    }
}
