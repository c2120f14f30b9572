//! JSON-RPC 2.0 as the protocol uses it: requests with string or integer ids, no batches.

use serde_json::{Map, Value, json};

/// The message is no JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The message is no JSON-RPC, or comes at the wrong time.
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;
/// There is no such resource; revisions before 2026-07-28.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// An HTTP header is missing or contradicts the message.
pub const HEADER_MISMATCH: i64 = -32020;
pub const UNSUPPORTED_REVISION: i64 = -32022;

/// A failed request.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

impl RpcError {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Adds what a program needs to know of it.
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// The answer to a request. `id` is null where the request's own can't be read.
    pub fn message(&self, id: &Value) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        match id {
            Value::Null => json!({ "jsonrpc": "2.0", "error": error }),
            id => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        }
    }
}

/// A request of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcRequest {
    /// A string or an integer.
    pub id: Value,
    pub method: String,
    pub params: Map<String, Value>,
}

impl RpcRequest {
    /// The field of `_meta` with this name.
    pub fn meta(&self, name: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(name)
    }
}

/// A message of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum RpcMessage {
    Request(RpcRequest),
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// To a request that this server never sent.
    Response,
}

/// A message that can't be read, with the id of its request where that can.
#[derive(Debug, Clone, PartialEq)]
pub struct MalformedMessage {
    pub id: Value,
    pub error: RpcError,
}

/// Reads a message.
#[expect(clippy::result_large_err, reason = "one message at a time, and the error is answered at once")]
pub fn parse(bytes: &[u8]) -> Result<RpcMessage, MalformedMessage> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| MalformedMessage {
        id: Value::Null,
        error: RpcError::new(PARSE_ERROR, format!("The message is not JSON: {error}.")),
    })?;
    let Value::Object(mut message) = value else {
        return Err(malformed(Value::Null, "A message is one JSON object; batches are not supported."));
    };
    let id = message.remove("id");
    let own = id.clone().filter(is_id).unwrap_or(Value::Null);
    if message.get("jsonrpc") != Some(&json!("2.0")) {
        return Err(malformed(own, "A message has \"jsonrpc\": \"2.0\"."));
    }
    let method = match message.remove("method") {
        Some(Value::String(method)) => method,
        Some(_) => return Err(malformed(own, "`method` is a string.")),
        None if message.contains_key("result") || message.contains_key("error") => {
            return Ok(RpcMessage::Response);
        }
        None => return Err(malformed(own, "A message needs `method`.")),
    };
    let params = match message.remove("params") {
        Some(Value::Object(params)) => params,
        None => Map::new(),
        Some(_) => {
            let error = RpcError::new(INVALID_PARAMS, "`params` is an object.");
            return Err(MalformedMessage { id: own, error });
        }
    };
    match id {
        None => Ok(RpcMessage::Notification { method, params }),
        Some(id) if is_id(&id) => Ok(RpcMessage::Request(RpcRequest { id, method, params })),
        Some(_) => Err(malformed(Value::Null, "`id` is a string or an integer.")),
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

fn malformed(id: Value, message: &str) -> MalformedMessage {
    MalformedMessage { id, error: RpcError::new(INVALID_REQUEST, message) }
}

/// The answer to a request.
pub fn response(id: &Value, outcome: Result<Value, RpcError>) -> Value {
    match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => error.message(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read() {
        let request = parse(br#"{"jsonrpc":"2.0","id":"a","method":"ping","params":{"_meta":{"x":1}}}"#);
        let Ok(RpcMessage::Request(request)) = request else { panic!("{request:?}") };
        assert_eq!((request.id.clone(), request.method.as_str()), (json!("a"), "ping"));
        assert_eq!(request.meta("x"), Some(&json!(1)));
        let notification = parse(br#"{"jsonrpc":"2.0","method":"x"}"#);
        assert_eq!(notification, Ok(RpcMessage::Notification { method: "x".into(), params: Map::new() }));
        assert_eq!(parse(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Ok(RpcMessage::Response));
    }

    #[test]
    fn malformed_messages_are_refused_with_their_id() {
        let cases: [(&[u8], i64, Value); 9] = [
            (b"{", PARSE_ERROR, Value::Null),
            (b"\xff", PARSE_ERROR, Value::Null),
            (b"[]", INVALID_REQUEST, Value::Null),
            (br#"{"id":1,"method":"x"}"#, INVALID_REQUEST, json!(1)),
            (br#"{"jsonrpc":"2.0","id":2}"#, INVALID_REQUEST, json!(2)),
            (br#"{"jsonrpc":"2.0","id":3,"method":4}"#, INVALID_REQUEST, json!(3)),
            (br#"{"jsonrpc":"2.0","id":4,"method":"x","params":[1]}"#, INVALID_PARAMS, json!(4)),
            (br#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, INVALID_REQUEST, Value::Null),
            (br#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, INVALID_REQUEST, Value::Null),
        ];
        for (bytes, code, id) in cases {
            let text = String::from_utf8_lossy(bytes);
            let malformed = parse(bytes).expect_err(&text);
            assert_eq!((malformed.error.code, malformed.id), (code, id), "{text}");
        }
    }
}
