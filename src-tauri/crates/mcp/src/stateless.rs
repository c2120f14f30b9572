//! The revision without sessions (2026-07-28): every request names its revision, and `server/discover` takes the place of
//! the handshake. Over HTTP headers repeat what those on the way may want to know.

use reqwest::header::HeaderValue;
use serde_json::{Value, json};

use super::{Client, GREET_WITHIN, Transport, client_info};
use contract::{Error, Result};
use documents::base64;

/// The revision without sessions.
const STATELESS: &str = "2026-07-28";

const REVISION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_KEY: &str = "io.modelcontextprotocol/clientInfo";

/// Headers that repeat the method of a request, and the name of what it is about.
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// Whether a refused handshake may come from a server that has none.
pub(crate) fn may_be_meant(error: &Error) -> bool {
    matches!(error.code(), "tools.no_method" | "tools.refused" | "tools.no_route")
}

/// What every request says about itself.
pub(crate) fn meta() -> Value {
    json!({ REVISION_KEY: STATELESS, CAPABILITIES_KEY: {}, CLIENT_KEY: client_info() })
}

/// Errors: the server wants something in return that this client does not give.
pub(crate) fn check_complete(name: &str, method: &str, said: Value) -> Result<Value> {
    match said["resultType"].as_str() {
        None | Some("complete") => Ok(said),
        Some(kind) => {
            let message = format!("{name} did not complete {method}: its result is of the kind \"{kind}\".");
            Err(Error::input("tools.incomplete", message, "See whether the tool works without asking back."))
        }
    }
}

/// The headers of a request of this revision; none of others.
pub(crate) fn headers_of(message: &Value) -> Vec<(&'static str, HeaderValue)> {
    let params = &message["params"];
    if params["_meta"][REVISION_KEY] != STATELESS {
        return Vec::new();
    }
    let method = message["method"].as_str().unwrap_or_default();
    let name = match method {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        _ => None,
    };
    let named = [(METHOD, Some(method)), (NAME, name)];
    named.into_iter().filter_map(|(key, text)| Some((key, header_value(text?)?))).collect()
}

/// Plain where a header can hold it, else as `=?base64?…?=`.
fn header_value(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b'!'..=b'~' | b' '))
        && text.trim() == text
        && !text.starts_with("=?base64?");
    let text =
        if is_plain { text.to_owned() } else { format!("=?base64?{}?=", base64::encode(text.as_bytes())) };
    HeaderValue::try_from(text).ok()
}

impl Client {
    /// Greets a server of this revision. If that fails, too, `refused` is the error: most servers have sessions.
    pub(crate) fn discovered(mut self, refused: Error) -> Result<Self> {
        self.is_stateless = true;
        if let Transport::Http(http) = &self.transport {
            http.agreed(STATELESS);
        }
        let Ok(said) = self.ask("server/discover", json!({}), GREET_WITHIN, None) else {
            return Err(refused);
        };
        let versions: Vec<&str> =
            said["supportedVersions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if !versions.contains(&STATELESS) {
            let message = format!(
                "{} uses protocol revisions \"{}\", none of which is supported.",
                self.core.name(),
                versions.join(", ")
            );
            let remedy = format!("Install a version of it that supports {STATELESS}.");
            return Err(Error::input("tools.revision", message, remedy));
        }
        self.take_capabilities(&said);
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_repeat_the_method_and_the_name() {
        let request = |name: &str| {
            let params = json!({ "name": name, "_meta": meta() });
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
        };
        let texts = |message: &Value| -> Vec<String> {
            headers_of(message).into_iter().map(|(_, value)| value.to_str().unwrap().to_owned()).collect()
        };
        assert_eq!(texts(&request("echo")), ["tools/call", "echo"]);
        // The specification's own examples.
        assert_eq!(texts(&request("line1\nline2"))[1], "=?base64?bGluZTEKbGluZTI=?=");
        assert_eq!(texts(&request("=?base64?literal?="))[1], "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=");
        assert!(headers_of(&json!({ "method": "tools/call", "params": { "name": "echo" } })).is_empty());
    }
}
