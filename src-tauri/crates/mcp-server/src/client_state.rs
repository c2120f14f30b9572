//! What the server knows of a client between its requests, besides its revision: the resources that it watches, and the
//! log messages that it wants.
#![expect(deprecated, reason = "revisions before 2026-07-28 have a log")]

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use rmcp::RoleServer;
use rmcp::model::{ErrorData, LoggingLevel, ResourceUpdatedNotificationParam};
use rmcp::service::Peer;
use tokio::task::JoinSet;

use crate::content_change::{ContentChange, ContentChanges};

/// Most resources that a client watches.
pub const MAX_WATCHED: usize = 1024;

/// State of one client.
#[derive(Default)]
pub struct ClientState {
    watched: Arc<WatchedResources>,
    /// Tells the client of changes. Ends with this state.
    watcher: Mutex<JoinSet<()>>,
    /// Least severity of the messages that it wants; `None`: it has not asked for any.
    log_level: Mutex<Option<LoggingLevel>>,
}

impl ClientState {
    /// Watches a resource, which need not exist yet, and tells the client of its changes. `changes` begins to watch.
    ///
    /// Errors: too many are watched.
    pub fn subscribe(
        &self,
        uri: String,
        changes: impl FnOnce() -> ContentChanges,
        peer: &Peer<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.watched.add(uri)?;
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        if watcher.is_empty() {
            watcher.spawn(push_changes(changes(), Arc::clone(&self.watched), peer.clone()));
        }
        Ok(())
    }

    /// Watches a resource no longer.
    pub fn unsubscribe(&self, uri: &str) {
        self.watched.uris().remove(uri);
    }

    /// Sets the least severity of messages.
    pub fn set_log_level(&self, level: LoggingLevel) {
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    /// Least severity of the messages that the client wants; `None`: it has not asked for any.
    pub fn log_level(&self) -> Option<LoggingLevel> {
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a message is at least as severe as another level. Levels are those of syslog (RFC 5424), the least first.
pub fn is_wanted(level: LoggingLevel, least: LoggingLevel) -> bool {
    level as u8 >= least as u8
}

/// URIs of the resources that a client watches.
#[derive(Default)]
struct WatchedResources(Mutex<HashSet<String>>);

impl WatchedResources {
    fn uris(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, uri: String) -> Result<(), ErrorData> {
        let mut uris = self.uris();
        if uris.len() >= MAX_WATCHED && !uris.contains(&uri) {
            let message = format!("A client watches at most {MAX_WATCHED} resources. Unsubscribe from one.");
            return Err(ErrorData::invalid_params(message, None));
        }
        uris.insert(uri);
        Ok(())
    }

    /// The URI that a change concerns; `None`: it concerns no resource that is watched.
    fn changed(&self, change: ContentChange) -> Option<String> {
        match change {
            ContentChange::Resource(uri) if self.uris().contains(&uri) => Some(uri),
            ContentChange::Resource(_)
            | ContentChange::ResourceList
            | ContentChange::PromptList
            | ContentChange::ToolList => None,
        }
    }
}

/// Sends a notification for every change of a watched resource, until the client leaves.
async fn push_changes(mut watch: ContentChanges, watched: Arc<WatchedResources>, peer: Peer<RoleServer>) {
    while let Some(changes) = watch.next().await {
        for uri in changes.into_iter().filter_map(|change| watched.changed(change)) {
            if peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ErrorCode;

    use super::*;

    #[test]
    fn only_watched_resources_are_told_of() {
        let watched = WatchedResources::default();
        let changed = |uri: &str| watched.changed(ContentChange::Resource(uri.into()));
        watched.add("a".into()).unwrap();
        assert_eq!(changed("a").as_deref(), Some("a"));
        assert_eq!(changed("b"), None);
        assert_eq!(watched.changed(ContentChange::ResourceList), None);
        watched.uris().remove("a");
        assert_eq!(changed("a"), None);
    }

    #[test]
    fn the_number_of_watched_resources_is_bounded() {
        let watched = WatchedResources::default();
        for index in 0..MAX_WATCHED {
            watched.add(index.to_string()).unwrap();
        }
        assert_eq!(watched.add("one more".into()).unwrap_err().code, ErrorCode::INVALID_PARAMS);
        watched.add("0".into()).unwrap();
    }

    #[test]
    fn messages_are_wanted_from_a_severity_on() {
        let least = LoggingLevel::Warning;
        assert!(is_wanted(LoggingLevel::Warning, least) && is_wanted(LoggingLevel::Emergency, least));
        assert!(!is_wanted(LoggingLevel::Notice, least));
    }
}
