//! `subscriptions/listen` of the stateless revision: one request whose answer is a stream of notifications.
//!
//! Nothing is sent that the client did not ask for.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use rmcp::model::{
    PromptListChangedNotification, ResourceListChangedNotification, ResourceUpdatedNotification,
    ResourceUpdatedNotificationParam, ServerCapabilities, ServerNotification, SubscriptionFilter,
    ToolListChangedNotification,
};
use rmcp::service::SubscriptionContext;

use crate::client_state::MAX_WATCHED;
use crate::content::Content;
use crate::content_change::{ContentChange, ContentChanges};

/// What the server tells of, as far as a client asks for it.
pub fn accepted(requested: &SubscriptionFilter, capabilities: &ServerCapabilities) -> SubscriptionFilter {
    let mut accepted = requested.supported_by(capabilities);
    if let Some(uris) = &mut accepted.resource_subscriptions {
        uris.truncate(MAX_WATCHED);
    }
    accepted
}

/// Changes for subscriptions that are about to be acknowledged: none after the acknowledgement is missed.
#[derive(Default)]
pub struct EarlyWatches(Mutex<VecDeque<ContentChanges>>);

impl EarlyWatches {
    fn queue(&self) -> MutexGuard<'_, VecDeque<ContentChanges>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to watch. Never more watches than subscriptions: `rmcp` asks once for each.
    pub fn begin(&self, content: &impl Content) {
        self.queue().push_back(content.changes());
    }

    /// The watch that has waited longest. Watches are alike, so it fits every subscription that began after it.
    pub fn take(&self) -> Option<ContentChanges> {
        self.queue().pop_front()
    }
}

/// The notification of a change; `None`: the client did not ask for it.
fn notification_of(change: ContentChange, filter: &SubscriptionFilter) -> Option<ServerNotification> {
    match change {
        ContentChange::ToolList => {
            (filter.tools_list_changed == Some(true)).then(|| ToolListChangedNotification::default().into())
        }
        ContentChange::PromptList => (filter.prompts_list_changed == Some(true))
            .then(|| PromptListChangedNotification::default().into()),
        ContentChange::ResourceList => (filter.resources_list_changed == Some(true))
            .then(|| ResourceListChangedNotification::default().into()),
        ContentChange::Resource(uri) => {
            let is_watched = filter.resource_subscriptions.as_ref().is_some_and(|uris| uris.contains(&uri));
            let params = ResourceUpdatedNotificationParam::new(uri);
            is_watched.then(|| ResourceUpdatedNotification::new(params).into())
        }
    }
}

/// Tells the client of what it wants to know, until it leaves or the application ends.
pub async fn tell(mut watch: ContentChanges, subscription: &SubscriptionContext) {
    while let Some(changes) = watch.next().await {
        let wanted = changes.into_iter().filter_map(|it| notification_of(it, subscription.accepted()));
        for notification in wanted {
            if subscription.sink().send(notification).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn filter(value: Value) -> SubscriptionFilter {
        serde_json::from_value(value).unwrap()
    }

    fn capabilities() -> ServerCapabilities {
        let builder = ServerCapabilities::builder().enable_tools();
        let builder = builder.enable_resources().enable_resources_subscribe().enable_resources_list_changed();
        builder.enable_prompts().enable_prompts_list_changed().build()
    }

    #[test]
    fn a_filter_accepts_what_the_server_has() {
        let all = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
            "resourceSubscriptions": ["b", "a"],
        });
        let expected = json!({
            "promptsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": ["b", "a"],
        });
        let accepted = |requested: Value| accepted(&filter(requested), &capabilities());
        assert_eq!(accepted(all), filter(expected));
        assert_eq!(accepted(json!({})), filter(json!({})));
        let too_many = json!({ "resourceSubscriptions": vec!["a"; MAX_WATCHED + 1] });
        assert_eq!(accepted(too_many).resource_subscriptions.unwrap().len(), MAX_WATCHED);
    }

    #[test]
    fn only_what_was_asked_for_is_told() {
        let all = [
            (
                ContentChange::ToolList,
                json!({ "toolsListChanged": true }),
                "notifications/tools/list_changed",
            ),
            (
                ContentChange::PromptList,
                json!({ "promptsListChanged": true }),
                "notifications/prompts/list_changed",
            ),
            (
                ContentChange::ResourceList,
                json!({ "resourcesListChanged": true }),
                "notifications/resources/list_changed",
            ),
            (
                ContentChange::Resource("a".into()),
                json!({ "resourceSubscriptions": ["a"] }),
                "notifications/resources/updated",
            ),
        ];
        let method = |change: &ContentChange, wanted: &Value| {
            let notification = notification_of(change.clone(), &filter(wanted.clone()))?;
            Some(serde_json::to_value(notification).unwrap()["method"].as_str().unwrap().to_owned())
        };
        for (change, wanted, expected) in &all {
            assert_eq!(method(change, wanted).as_deref(), Some(*expected));
            for (_, other, _) in all.iter().filter(|(it, ..)| it != change) {
                assert_eq!(method(change, other), None, "{change:?} {other}");
            }
        }
        assert_eq!(method(&ContentChange::Resource("b".into()), &all[3].1), None);
    }
}
