//! The revision without sessions (2026-07-28): every request names its revision, and `server/discover` takes the place of
//! the handshake. Over HTTP headers repeat what those on the way may want to know.

use reqwest::header::HeaderValue;
use serde_json::{Value, json};

use super::core::RpcError;
use super::{Client, GREET_WITHIN, Transport, client_info, refused};
use contract::{Error, Result};
use documents::base64;

/// The revision without sessions.
const STATELESS: &str = "2026-07-28";

const REVISION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_KEY: &str = "io.modelcontextprotocol/clientInfo";

/// The code of a refusal of the request's revision.
const UNSUPPORTED_REVISION: i64 = -32022;

/// Headers that repeat the method of a request, and the name of what it is about.
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// Whether a refused handshake may come from a server that has none.
pub(crate) fn may_be_meant(error: &Error) -> bool {
    matches!(error.code(), "tools.no_method" | "tools.refused" | "tools.no_route")
}

/// What every request says about itself.
pub(crate) fn meta(capabilities: Value) -> Value {
    json!({ REVISION_KEY: STATELESS, CAPABILITIES_KEY: capabilities, CLIENT_KEY: client_info() })
}

/// Whether a message is one of this revision.
pub(crate) fn is_stateless(message: &Value) -> bool {
    message["params"]["_meta"][REVISION_KEY] == STATELESS
}

/// The headers of a request of this revision; none of others.
pub(crate) fn headers_of(message: &Value) -> Vec<(&'static str, HeaderValue)> {
    let params = &message["params"];
    if !is_stateless(message) {
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
pub(crate) fn header_value(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b'!'..=b'~' | b' '))
        && text.trim() == text
        && !text.starts_with("=?base64?");
    let text =
        if is_plain { text.to_owned() } else { format!("=?base64?{}?=", base64::encode(text.as_bytes())) };
    HeaderValue::try_from(text).ok()
}

impl Client {
    /// Asks a server of this revision what it has. The revision is taken back where there is none.
    ///
    /// Errors: `tools.revision` where it has another revision only; others, where it may have sessions.
    pub(crate) fn discover(&mut self) -> Result<()> {
        self.set_stateless(true);
        let discovered = self.discover_once().and_then(|said| match said {
            // It has this revision, but not in this request: once more.
            Err(error) if error.code == UNSUPPORTED_REVISION && names_revision(&error.data["supported"]) => {
                self.discover_once()
            }
            other => Ok(other),
        });
        let said = match discovered {
            Ok(Ok(said)) => said,
            Ok(Err(error)) => {
                self.set_stateless(false);
                return Err(refused(self.core.name(), "server/discover", &error));
            }
            Err(error) => {
                self.set_stateless(false);
                return Err(error);
            }
        };
        if !names_revision(&said["supportedVersions"]) {
            let named: Vec<&str> = said["supportedVersions"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let message = format!(
                "{} uses protocol revisions \"{}\", none of which is supported.",
                self.core.name(),
                named.join(", ")
            );
            let remedy = format!("Install a version of it that supports {STATELESS}.");
            return Err(Error::input("tools.revision", message, remedy));
        }
        self.take_capabilities(&said);
        Ok(())
    }

    fn discover_once(&self) -> Result<Result<Value, RpcError>> {
        self.request("server/discover", json!({}), GREET_WITHIN, None)
    }

    fn set_stateless(&mut self, is_stateless: bool) {
        self.is_stateless = is_stateless;
        if let Transport::Http(http) = &self.transport {
            http.agreed(is_stateless.then_some(STATELESS));
        }
    }
}

fn names_revision(list: &Value) -> bool {
    list.as_array().into_iter().flatten().any(|name| name == STATELESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_repeat_the_method_and_the_name() {
        let request = |name: &str| {
            let params = json!({ "name": name, "_meta": meta(json!({})) });
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
