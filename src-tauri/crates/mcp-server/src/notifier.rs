//! Notifications that belong to one request: its progress, and messages for the client's log.

use contract::types::ErrorInfo;
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

use crate::client_state::{ClientState, LogLevel};
use crate::rpc::RpcRequest;

/// The field of `_meta` with the log level of a request, for revisions without a session.
const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

/// Where the notifications of a call go.
#[derive(Default)]
pub struct CallNotifiers {
    /// `None`: the client did not ask for progress.
    pub progress: Option<ProgressNotifier>,
    /// `None`: the client wants no warnings.
    pub warnings: Option<WarningNotifier>,
}

impl CallNotifiers {
    /// Those that a request asks for, or its client before it.
    pub fn of(request: &RpcRequest, client: &ClientState, outbox: &Sender<Value>) -> Self {
        let warnings = wants_warnings(request, client).then(|| WarningNotifier { outbox: outbox.clone() });
        Self { progress: ProgressNotifier::of(request, outbox), warnings }
    }
}

/// Whether the client wants to be warned during a request.
pub fn wants_warnings(request: &RpcRequest, client: &ClientState) -> bool {
    let own = LogLevel::of_value(request.meta(LOG_LEVEL_KEY)).ok();
    client.wants_log(LogLevel::Warning) || own.is_some_and(|least| LogLevel::Warning >= least)
}

/// Sends warnings about a request to its client's log.
pub struct WarningNotifier {
    outbox: Sender<Value>,
}

impl WarningNotifier {
    /// Notifies the client of something that did not fail.
    pub async fn send(&self, notice: &ErrorInfo) {
        let data = json!({ "code": notice.code, "message": notice.message, "remedy": notice.remedy });
        let params = json!({ "level": "warning", "logger": "inglenook", "data": data });
        let message = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params });
        // A client that left is noticed by its transport, which drops the request.
        let _ = self.outbox.send(message).await;
    }
}

/// Sends the progress of a request to its client, who asked for it with a token.
pub struct ProgressNotifier {
    token: Value,
    outbox: Sender<Value>,
}

impl ProgressNotifier {
    /// `None`: the request has no token, or one that is neither a string nor an integer.
    pub fn of(request: &RpcRequest, outbox: &Sender<Value>) -> Option<Self> {
        let token =
            request.meta("progressToken").filter(|it| it.is_string() || it.is_i64() || it.is_u64())?;
        Some(Self { token: token.clone(), outbox: outbox.clone() })
    }

    /// Notifies the client. `text` is omitted where it is empty.
    pub async fn send(&self, progress: f64, total: Option<f64>, text: &str) {
        let mut params = json!({ "progressToken": self.token, "progress": number(progress) });
        if let Some(total) = total {
            params["total"] = number(total);
        }
        if !text.is_empty() {
            params["message"] = json!(text);
        }
        let message = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
        // A client that left is noticed by its transport, which drops the request.
        let _ = self.outbox.send(message).await;
    }
}

/// Whole numbers are written without a fraction.
fn number(value: f64) -> Value {
    match value {
        whole if whole.fract() == 0.0 && (0.0..1e15).contains(&whole) => json!(whole as u64),
        value => json!(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    #[test]
    fn only_a_token_asks_for_progress() {
        let (outbox, _inbox) = tokio::sync::mpsc::channel(1);
        for (token, expected) in
            [(json!("a"), true), (json!(7), true), (json!(1.5), false), (Value::Null, false)]
        {
            let mut params = Map::new();
            params.insert("_meta".into(), json!({ "progressToken": token }));
            let request = RpcRequest { id: json!(1), method: "x".into(), params };
            assert_eq!(ProgressNotifier::of(&request, &outbox).is_some(), expected, "{token}");
        }
    }

    #[test]
    fn warnings_are_for_those_who_asked() {
        let request = |meta: Value| {
            let params = Map::from_iter([("_meta".to_owned(), meta)]);
            RpcRequest { id: json!(1), method: "tools/call".into(), params }
        };
        let client = ClientState::default();
        let plain = request(json!({}));
        assert!(!wants_warnings(&plain, &client));
        assert!(wants_warnings(&request(json!({ LOG_LEVEL_KEY: "info" })), &client));
        assert!(!wants_warnings(&request(json!({ LOG_LEVEL_KEY: "error" })), &client));
        client.set_log_level(LogLevel::Debug);
        assert!(wants_warnings(&plain, &client));
    }
}
