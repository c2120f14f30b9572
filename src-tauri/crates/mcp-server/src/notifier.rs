//! Notifications that belong to one request: its progress, and messages for the client's log.
#![expect(deprecated, reason = "revisions before 2026-07-28 have a log")]

use contract::types::ErrorInfo;
use rmcp::RoleServer;
use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
    RequestMetaObject,
};
use rmcp::service::{Peer, RequestContext};
use serde_json::{Value, json};

use crate::client_state::{ClientState, is_wanted};

/// Where the notifications of a call go.
pub struct CallNotifiers {
    /// `None`: the client did not ask for progress.
    pub progress: Option<ProgressNotifier>,
    pub log: LogNotifier,
}

impl CallNotifiers {
    /// Those that a request asks for, or its client before it.
    pub fn of(context: &RequestContext<RoleServer>, client: &ClientState) -> Self {
        let peer = &context.peer;
        let progress = context.meta.get_progress_token();
        Self {
            progress: progress.map(|token| ProgressNotifier { token, peer: peer.clone() }),
            log: LogNotifier { least: least_level(&context.meta, client), peer: peer.clone() },
        }
    }
}

/// The least severity of messages that the client wants during a request: the lower one of both levels that it set.
fn least_level(meta: &RequestMetaObject, client: &ClientState) -> Option<LoggingLevel> {
    match (client.log_level(), meta.log_level()) {
        (Some(a), Some(b)) => Some(if is_wanted(a, b) { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// Sends messages about a request to its client's log.
pub struct LogNotifier {
    /// `None`: the client wants no messages.
    least: Option<LoggingLevel>,
    peer: Peer<RoleServer>,
}

impl LogNotifier {
    /// Sends a message, if the client wants those of this severity.
    pub async fn send(&self, level: LoggingLevel, data: Value) {
        if self.least.is_none_or(|least| !is_wanted(level, least)) {
            return;
        }
        let message = LoggingMessageNotificationParam::new(level, data);
        // A client that left is noticed by its transport, which cancels the request.
        let _ = self.peer.notify_logging_message(message.with_logger("inglenook")).await;
    }

    /// Notifies the client of something that did not fail.
    pub async fn warn(&self, notice: &ErrorInfo) {
        let data = json!({ "code": notice.code, "message": notice.message, "remedy": notice.remedy });
        self.send(LoggingLevel::Warning, data).await;
    }
}

/// Sends the progress of a request to its client, who asked for it with a token.
pub struct ProgressNotifier {
    token: ProgressToken,
    peer: Peer<RoleServer>,
}

impl ProgressNotifier {
    /// Notifies the client. `text` is omitted where it is empty.
    pub async fn send(&self, progress: f64, total: Option<f64>, text: &str) {
        let mut params = ProgressNotificationParam::new(self.token.clone(), progress);
        params.total = total;
        params.message = (!text.is_empty()).then(|| text.to_owned());
        // A client that left is noticed by its transport, which cancels the request.
        let _ = self.peer.notify_progress(params).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_for_those_who_asked() {
        let meta = |level: LoggingLevel| {
            let mut meta = RequestMetaObject::new();
            meta.set_log_level(level);
            meta
        };
        let client = ClientState::default();
        let plain = RequestMetaObject::new();
        assert_eq!(least_level(&plain, &client), None);
        assert_eq!(least_level(&meta(LoggingLevel::Info), &client), Some(LoggingLevel::Info));
        client.set_log_level(LoggingLevel::Warning);
        assert_eq!(least_level(&plain, &client), Some(LoggingLevel::Warning));
        assert_eq!(least_level(&meta(LoggingLevel::Debug), &client), Some(LoggingLevel::Debug));
        assert_eq!(least_level(&meta(LoggingLevel::Error), &client), Some(LoggingLevel::Warning));
    }
}
