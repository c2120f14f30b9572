//! Notifications that belong to one request: its progress, and messages for the client's log.
#![expect(deprecated, reason = "revisions before 2026-07-28 have a log")]

use contract::types::ErrorInfo;
use rmcp::RoleServer;
use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
    RequestMetaObject,
};
use rmcp::service::{Peer, RequestContext};
use serde_json::json;

use crate::client_state::{ClientState, is_wanted};

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
    pub fn of(context: &RequestContext<RoleServer>, client: &ClientState) -> Self {
        let peer = &context.peer;
        let progress = context.meta.get_progress_token();
        Self {
            progress: progress.map(|token| ProgressNotifier { token, peer: peer.clone() }),
            warnings: wants_warnings(&context.meta, client).then(|| WarningNotifier { peer: peer.clone() }),
        }
    }
}

/// Whether the client wants to be warned during a request.
fn wants_warnings(meta: &RequestMetaObject, client: &ClientState) -> bool {
    let warning = LoggingLevel::Warning;
    client.wants_log(warning) || meta.log_level().is_some_and(|least| is_wanted(warning, least))
}

/// Sends warnings about a request to its client's log.
pub struct WarningNotifier {
    peer: Peer<RoleServer>,
}

impl WarningNotifier {
    /// Notifies the client of something that did not fail.
    pub async fn send(&self, notice: &ErrorInfo) {
        let data = json!({ "code": notice.code, "message": notice.message, "remedy": notice.remedy });
        let message = LoggingMessageNotificationParam::new(LoggingLevel::Warning, data);
        // A client that left is noticed by its transport, which cancels the request.
        let _ = self.peer.notify_logging_message(message.with_logger("inglenook")).await;
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
    fn warnings_are_for_those_who_asked() {
        let meta = |level: LoggingLevel| {
            let mut meta = RequestMetaObject::new();
            meta.set_log_level(level);
            meta
        };
        let client = ClientState::default();
        let plain = RequestMetaObject::new();
        assert!(!wants_warnings(&plain, &client));
        assert!(wants_warnings(&meta(LoggingLevel::Info), &client));
        assert!(!wants_warnings(&meta(LoggingLevel::Error), &client));
        client.set_log_level(LoggingLevel::Debug);
        assert!(wants_warnings(&plain, &client));
    }
}
