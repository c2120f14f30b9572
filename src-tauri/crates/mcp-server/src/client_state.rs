//! What the server knows of a client between its requests, besides its revision: the resources that it watches, and the
//! log messages that it wants.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use app::App;
use contract::types::AppEvent;
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

use crate::resources;
use crate::rpc::{INVALID_PARAMS, RpcError};

/// Most resources that a client watches.
pub const MAX_WATCHED: usize = 1024;

/// Severity of a log message, as in syslog (RFC 5424). The least severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    const ALL: [(&str, Self); 8] = [
        ("debug", Self::Debug),
        ("info", Self::Info),
        ("notice", Self::Notice),
        ("warning", Self::Warning),
        ("error", Self::Error),
        ("critical", Self::Critical),
        ("alert", Self::Alert),
        ("emergency", Self::Emergency),
    ];

    /// The level of a name.
    ///
    /// Errors: no level has it.
    pub fn of_value(value: Option<&Value>) -> Result<Self, RpcError> {
        let name = value.and_then(Value::as_str).unwrap_or_default();
        let found = Self::ALL.into_iter().find(|(other, _)| *other == name).map(|(_, level)| level);
        found.ok_or_else(|| {
            let names = Self::ALL.map(|(name, _)| name).join(", ");
            RpcError::new(INVALID_PARAMS, format!("The log level is one of {names}."))
        })
    }
}

/// State of one client.
#[derive(Default)]
pub struct ClientState {
    watched: Mutex<HashSet<String>>,
    /// Least severity of the messages that it wants; `None`: it has not asked for any.
    log_level: Mutex<Option<LogLevel>>,
}

impl ClientState {
    fn watched(&self) -> MutexGuard<'_, HashSet<String>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches a resource, which need not exist yet.
    ///
    /// Errors: too many are watched.
    pub fn subscribe(&self, uri: &str) -> Result<(), RpcError> {
        let mut watched = self.watched();
        if watched.len() >= MAX_WATCHED && !watched.contains(uri) {
            let message = format!("A client watches at most {MAX_WATCHED} resources. Unsubscribe from one.");
            return Err(RpcError::new(INVALID_PARAMS, message));
        }
        watched.insert(uri.to_owned());
        Ok(())
    }

    /// Watches a resource no longer.
    pub fn unsubscribe(&self, uri: &str) {
        self.watched().remove(uri);
    }

    /// Sets the least severity of messages.
    pub fn set_log_level(&self, level: LogLevel) {
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    /// Whether the client wants messages of this severity.
    pub fn wants_log(&self, level: LogLevel) -> bool {
        self.log_level.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|least| level >= least)
    }

    /// The notification for an event; `None`: it concerns no resource that is watched.
    fn notification(&self, event: &AppEvent) -> Option<Value> {
        let id = match event {
            AppEvent::ConversationChanged { conversation } => &conversation.id,
            AppEvent::ConversationRemoved { id } => id,
            _ => return None,
        };
        let uri = resources::uri_of(id);
        self.watched().contains(&uri).then(|| {
            json!({
                "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": uri },
            })
        })
    }

    /// Sends a notification for every change of a watched resource, until the client leaves.
    pub async fn push_changes(&self, app: &App, outbox: &Sender<Value>) {
        let mut watch = app.watch_app();
        while let Some(events) = std::future::poll_fn(|context| watch.poll_next(context)).await {
            for notification in events.iter().filter_map(|event| self.notification(event)) {
                if outbox.send(notification).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_watched_resources_are_told_of() {
        let client = ClientState::default();
        let removed = |id: &str| AppEvent::ConversationRemoved { id: id.into() };
        let uri = resources::uri_of("a");
        client.subscribe(&uri).unwrap();
        let notification = client.notification(&removed("a")).unwrap();
        assert_eq!(notification["method"], "notifications/resources/updated");
        assert_eq!(notification["params"], json!({ "uri": uri }));
        assert_eq!(client.notification(&removed("b")), None);
        assert_eq!(client.notification(&AppEvent::FolderRemoved { id: "a".into() }), None);
        client.unsubscribe(&uri);
        assert_eq!(client.notification(&removed("a")), None);
    }

    #[test]
    fn the_number_of_watched_resources_is_bounded() {
        let client = ClientState::default();
        for index in 0..MAX_WATCHED {
            client.subscribe(&index.to_string()).unwrap();
        }
        assert_eq!(client.subscribe("one more").unwrap_err().code, INVALID_PARAMS);
        client.subscribe("0").unwrap();
    }

    #[test]
    fn messages_are_sent_from_the_wanted_severity_on() {
        let client = ClientState::default();
        assert!(!client.wants_log(LogLevel::Emergency));
        client.set_log_level(LogLevel::of_value(Some(&json!("warning"))).unwrap());
        assert!(client.wants_log(LogLevel::Warning) && !client.wants_log(LogLevel::Notice));
        for value in [None, Some(json!("loud")), Some(json!(3))] {
            assert_eq!(LogLevel::of_value(value.as_ref()).unwrap_err().code, INVALID_PARAMS);
        }
    }
}
