//! The beginning of a conversation between client and server: handshake, discovery, and the revision of a request.

use serde_json::{Map, Value, json};

use crate::revision::Revision;
use crate::rpc::{INVALID_PARAMS, INVALID_REQUEST, RpcError, RpcRequest, UNSUPPORTED_REVISION};

const REVISION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

const INSTRUCTIONS: &str = "Language models that run on this computer, and the chats saved with them. \
    `generate_text` and `chat` answer; `list_models` says with what. Chats are resources, read as Markdown.";

/// How long clients may keep what never changes while this program runs, in milliseconds.
const FIXED_TTL_MS: u64 = 3_600_000;

/// The revision that a request names in its `_meta`.
pub fn revision_in_meta(request: &RpcRequest) -> Option<&Value> {
    request.meta(REVISION_KEY)
}

/// The revision of a request: its own, or that of the handshake.
///
/// Errors: an unknown revision, a missing field, a request before the handshake.
pub fn revision_of(request: &RpcRequest, handshake: Option<Revision>) -> Result<Revision, RpcError> {
    let stands_alone = revision_in_meta(request).is_some()
        || request.meta(CAPABILITIES_KEY).is_some()
        || request.method == "server/discover";
    match handshake {
        _ if stands_alone => revision_by_itself(request),
        Some(revision) => Ok(revision),
        None => Err(RpcError::new(
            INVALID_REQUEST,
            format!("Send `initialize` first, or name the revision in `_meta` as {REVISION_KEY}."),
        )),
    }
}

/// The revision of a request that no handshake came before.
///
/// Errors: an unknown revision, a missing field.
pub fn revision_by_itself(request: &RpcRequest) -> Result<Revision, RpcError> {
    let named = revision_in_meta(request).and_then(Value::as_str);
    let Some(name) = named else { return Err(missing(&[REVISION_KEY])) };
    let revision = Revision::of_name(name).ok_or_else(|| unsupported(name))?;
    if !request.meta(CAPABILITIES_KEY).is_some_and(Value::is_object) {
        return Err(missing(&[CAPABILITIES_KEY]));
    }
    Ok(revision)
}

fn missing(keys: &[&str]) -> RpcError {
    RpcError::new(INVALID_PARAMS, format!("`_meta` of the request needs {}.", keys.join(" and ")))
}

/// The error for a revision that this server does not speak.
pub fn unsupported(name: &str) -> RpcError {
    let supported = Revision::ALL.map(Revision::name);
    RpcError::new(UNSUPPORTED_REVISION, format!("The revision {name} of the protocol is not supported."))
        .with_data(json!({ "supported": supported, "requested": name }))
}

/// The revision that a handshake agrees on, and its answer.
///
/// Errors: no revision is named.
pub fn initialize(request: &RpcRequest) -> Result<(Revision, Value), RpcError> {
    let Some(asked) = request.params.get("protocolVersion").and_then(Value::as_str) else {
        return Err(RpcError::new(INVALID_PARAMS, "`protocolVersion` is missing."));
    };
    let known = Revision::of_name(asked).filter(|revision| !revision.is_stateless());
    let revision = known.unwrap_or(Revision::NEWEST_WITH_HANDSHAKE);
    let result = json!({
        "protocolVersion": revision.name(),
        "capabilities": capabilities(revision),
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    });
    Ok((revision, result))
}

/// The answer to `server/discover`.
pub fn discover(revision: Revision) -> Value {
    json!({
        "supportedVersions": Revision::ALL.map(Revision::name),
        "capabilities": capabilities(revision),
        "instructions": INSTRUCTIONS,
    })
}

/// In the stateless revision a log level comes with each request, and changes on request of `subscriptions/listen`.
fn capabilities(revision: Revision) -> Value {
    match revision.is_stateless() {
        true => json!({
            "tools": {}, "completions": {},
            "resources": { "subscribe": true, "listChanged": true },
            "prompts": { "listChanged": true },
        }),
        false => json!({
            "tools": {}, "completions": {}, "resources": { "subscribe": true }, "prompts": {}, "logging": {},
        }),
    }
}

fn server_info() -> Value {
    json!({ "name": "inglenook", "title": "Inglenook", "version": env!("CARGO_PKG_VERSION") })
}

/// Adds what the stateless revision wants in every result: its type, its server, and how long it stays true.
pub fn complete(method: &str, revision: Revision, mut result: Value) -> Value {
    let Some(fields) = result.as_object_mut().filter(|_| revision.is_stateless()) else { return result };
    fields.insert("resultType".into(), json!("complete"));
    let ttl_ms = match method {
        "tools/list" | "resources/templates/list" | "server/discover" => Some(FIXED_TTL_MS),
        "prompts/list" | "resources/list" | "resources/read" => Some(0),
        _ => None,
    };
    if let Some(ttl_ms) = ttl_ms {
        fields.insert("ttlMs".into(), json!(ttl_ms));
        fields.insert("cacheScope".into(), json!("private"));
    }
    let meta = fields.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
    meta[SERVER_KEY] = server_info();
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::{RpcMessage, parse};

    fn request(method: &str, params: Value) -> RpcRequest {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        match parse(message.to_string().as_bytes()) {
            Ok(RpcMessage::Request(request)) => request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_revision_is_the_requests_own_or_that_of_the_handshake() {
        let handshake = Some(Revision::V2025_06_18);
        let plain = request("tools/list", json!({}));
        assert_eq!(revision_of(&plain, handshake), Ok(Revision::V2025_06_18));
        assert_eq!(revision_of(&plain, None).unwrap_err().code, INVALID_REQUEST);
        let meta = |revision: Value| {
            request("tools/list", json!({ "_meta": { REVISION_KEY: revision, CAPABILITIES_KEY: {} } }))
        };
        assert_eq!(revision_of(&meta(json!("2026-07-28")), handshake), Ok(Revision::V2026_07_28));
        assert_eq!(revision_of(&meta(json!("2025-11-25")), None), Ok(Revision::V2025_11_25));
        let unknown = revision_of(&meta(json!("1900-01-01")), None).unwrap_err();
        assert_eq!((unknown.code, unknown.data.unwrap()["requested"].clone()), (-32022, json!("1900-01-01")));
        let no_capabilities = request("tools/list", json!({ "_meta": { REVISION_KEY: "2026-07-28" } }));
        assert_eq!(revision_of(&no_capabilities, handshake).unwrap_err().code, INVALID_PARAMS);
        let discover = request("server/discover", json!({}));
        assert_eq!(revision_of(&discover, handshake).unwrap_err().code, INVALID_PARAMS);
        assert_eq!(revision_of(&discover, None).unwrap_err().code, INVALID_PARAMS);
    }

    #[test]
    fn a_handshake_agrees_on_a_revision_that_has_one() {
        for (asked, expected) in [
            ("2025-11-25", "2025-11-25"),
            ("2024-11-05", "2024-11-05"),
            ("2026-07-28", "2025-11-25"),
            ("1900-01-01", "2025-11-25"),
        ] {
            let (_, result) =
                initialize(&request("initialize", json!({ "protocolVersion": asked }))).unwrap();
            assert_eq!(result["protocolVersion"], expected, "{asked}");
        }
        assert_eq!(initialize(&request("initialize", json!({}))).unwrap_err().code, INVALID_PARAMS);
    }

    #[test]
    fn only_stateless_results_say_their_type() {
        let new = complete("tools/list", Revision::V2026_07_28, json!({ "tools": [] }));
        assert_eq!((&new["resultType"], &new["cacheScope"]), (&json!("complete"), &json!("private")));
        assert_eq!(new["_meta"][SERVER_KEY]["name"], "inglenook");
        let old = complete("tools/list", Revision::V2025_11_25, json!({ "tools": [] }));
        assert_eq!(old, json!({ "tools": [] }));
    }
}
