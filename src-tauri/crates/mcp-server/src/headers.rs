//! HTTP headers of the stateless revision, which repeat parts of the message for those on the way.

use axum::http::HeaderMap;
use serde_json::{Map, Value};
use server::base64;

use crate::lifecycle;
use crate::rpc::{HEADER_MISMATCH, RpcError, RpcRequest};

pub const REVISION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

const BASE64_PREFIX: &str = "=?base64?";
const BASE64_SUFFIX: &str = "?=";

/// Checks that the headers say what a request of the stateless revision says.
pub fn check(headers: &HeaderMap, request: &RpcRequest) -> Result<(), RpcError> {
    check_revision(headers, request)?;
    check_one(headers, METHOD, &request.method)?;
    match named(&request.method, &request.params) {
        Some(name) => check_one(headers, NAME, name),
        None => Ok(()),
    }
}

/// Checks that the header of the revision says what the request says.
pub fn check_revision(headers: &HeaderMap, request: &RpcRequest) -> Result<(), RpcError> {
    let revision = lifecycle::revision_in_meta(request).and_then(Value::as_str).unwrap_or_default();
    check_one(headers, REVISION, revision)
}

/// What `Mcp-Name` repeats.
fn named<'a>(method: &str, params: &'a Map<String, Value>) -> Option<&'a str> {
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return None,
    };
    params.get(key)?.as_str()
}

fn check_one(headers: &HeaderMap, header: &str, expected: &str) -> Result<(), RpcError> {
    let mismatch = |what: &str| RpcError::new(HEADER_MISMATCH, format!("The header {header} {what}."));
    let mut values = headers.get_all(header).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(mismatch("is missing, or stands there twice"));
    };
    let value = value.to_str().map_err(|_| mismatch("has invalid characters"))?;
    let value = decode(value).ok_or_else(|| mismatch("is not valid Base64"))?;
    if value != expected {
        return Err(mismatch(&format!("is \"{value}\", but the message says \"{expected}\"")));
    }
    Ok(())
}

/// A header's value, plain or as `=?base64?…?=`.
fn decode(value: &str) -> Option<String> {
    let coded = value.strip_prefix(BASE64_PREFIX).and_then(|rest| rest.strip_suffix(BASE64_SUFFIX));
    match coded {
        Some(coded) => String::from_utf8(base64::decode(coded)?).ok(),
        None => Some(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn base64_is_decoded_as_the_specification_has_it() {
        // The second and third are the specification's own examples.
        let cases = [
            ("plain", Some("plain")),
            ("=?base64?bGluZTEKbGluZTI=?=", Some("line1\nline2")),
            ("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", Some("=?base64?literal?=")),
            ("=?base64??=", Some("")),
            ("=?base64?bGluZTE?=", None),
            ("=?base64?bGlu!TEK?=", None),
            ("=?base64?bG===?=", None),
            ("=?base64?/w==?=", None),
        ];
        for (value, expected) in cases {
            assert_eq!(decode(value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn headers_say_what_the_message_says() {
        let request = RpcRequest {
            id: json!(1),
            method: "tools/call".into(),
            params: json!({
                "name": "chat",
                "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" },
            })
            .as_object()
            .cloned()
            .unwrap(),
        };
        let good = [(REVISION, "2026-07-28"), (METHOD, "tools/call"), (NAME, "chat")];
        let of = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, value.parse().unwrap());
            }
            headers
        };
        assert_eq!(check(&of(&good), &request), Ok(()));
        let coded = [good[0], good[1], (NAME, "=?base64?Y2hhdA==?=")];
        assert_eq!(check(&of(&coded), &request), Ok(()));
        let wrong: [&[(&str, &str)]; 6] = [
            &[],
            &good[..2],
            &[good[0], good[1], (NAME, "Chat")],
            &[good[0], (METHOD, "tools/list"), good[2]],
            &[(REVISION, "2025-11-25"), good[1], good[2]],
            &[good[0], good[1], good[2], good[2]],
        ];
        for pairs in wrong {
            assert_eq!(check(&of(pairs), &request).unwrap_err().code, HEADER_MISMATCH, "{pairs:?}");
        }
    }
}
