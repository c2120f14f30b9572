//! `subscriptions/listen` of the stateless revision: one request whose answer is a stream of notifications.
//!
//! Nothing is sent that the client did not ask for.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use app::App;
use contract::types::AppEvent;
use platform::Watch;
use rmcp::model::{
    PromptListChangedNotification, ResourceListChangedNotification, ResourceUpdatedNotification,
    ResourceUpdatedNotificationParam, ServerNotification, SubscriptionFilter,
};
use rmcp::service::SubscriptionContext;

use crate::client_state::MAX_WATCHED;
use crate::resources;

/// The setting with the user's own prompts.
const PROMPTS_SETTING: &str = "prompts";

/// What this server tells of, as far as a client asks for it: the tools never change.
pub fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = requested.clone();
    accepted.tools_list_changed = None;
    if let Some(uris) = &mut accepted.resource_subscriptions {
        uris.truncate(MAX_WATCHED);
    }
    accepted
}

/// Watches of subscriptions that are about to be acknowledged: no change after the acknowledgement is missed.
#[derive(Default)]
pub struct EarlyWatches(Mutex<VecDeque<Watch<AppEvent>>>);

impl EarlyWatches {
    fn queue(&self) -> MutexGuard<'_, VecDeque<Watch<AppEvent>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to watch. Never more watches than subscriptions: `rmcp` asks once for each.
    pub fn begin(&self, app: &App) {
        self.queue().push_back(app.watch_app());
    }

    /// The watch that has waited longest. Watches are alike, so it fits every subscription that began after it.
    pub fn take(&self) -> Option<Watch<AppEvent>> {
        self.queue().pop_front()
    }
}

/// Finds what an event changes for a client.
struct ChangeTracker {
    filter: SubscriptionFilter,
    /// Titles of the chats that have changed, by id. The list changes where a chat comes, goes, or has another title.
    titles: HashMap<String, String>,
}

impl ChangeTracker {
    /// The notifications for an event.
    fn changes(&mut self, event: &AppEvent) -> Vec<ServerNotification> {
        let (id, is_other_list) = match event {
            AppEvent::ConversationChanged { conversation } => {
                let before = self.titles.insert(conversation.id.clone(), conversation.title.clone());
                (&conversation.id, before.as_ref() != Some(&conversation.title))
            }
            AppEvent::ConversationRemoved { id } => {
                self.titles.remove(id);
                (id, true)
            }
            AppEvent::SettingChanged { row }
                if row.key == PROMPTS_SETTING && self.filter.prompts_list_changed == Some(true) =>
            {
                return vec![PromptListChangedNotification::default().into()];
            }
            _ => return Vec::new(),
        };
        let uri = resources::uri_of(id);
        let is_watched = self.filter.resource_subscriptions.as_ref().is_some_and(|uris| uris.contains(&uri));
        let updated = is_watched.then(|| {
            let params = ResourceUpdatedNotificationParam::new(uri);
            ServerNotification::from(ResourceUpdatedNotification::new(params))
        });
        let listed = (is_other_list && self.filter.resources_list_changed == Some(true))
            .then(|| ResourceListChangedNotification::default().into());
        updated.into_iter().chain(listed).collect()
    }
}

/// Tells the client of what it wants to know, until it leaves or the application ends.
pub async fn tell(mut watch: Watch<AppEvent>, subscription: &SubscriptionContext) {
    let mut tracker = ChangeTracker { filter: subscription.accepted().clone(), titles: HashMap::new() };
    while let Some(events) = std::future::poll_fn(|context| watch.poll_next(context)).await {
        for notification in events.iter().flat_map(|event| tracker.changes(event)) {
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

    #[test]
    fn a_filter_accepts_what_the_server_has() {
        let all = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
            "resourceSubscriptions": ["b", "a"],
        });
        let expected = json!({
            "promptsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": ["b", "a"],
        });
        assert_eq!(accepted(&filter(all)), filter(expected));
        assert_eq!(accepted(&filter(json!({}))), filter(json!({})));
        let too_many = json!({ "resourceSubscriptions": vec!["a"; MAX_WATCHED + 1] });
        assert_eq!(accepted(&filter(too_many)).resource_subscriptions.unwrap().len(), MAX_WATCHED);
    }

    #[test]
    fn only_what_was_asked_for_is_told() {
        let methods = |tracker: &mut ChangeTracker, event: &AppEvent| {
            let method = |it| serde_json::to_value(it).unwrap()["method"].as_str().unwrap().to_owned();
            tracker.changes(event).into_iter().map(method).collect::<Vec<_>>()
        };
        let tracker = |wanted: Value| ChangeTracker { filter: filter(wanted), titles: HashMap::new() };
        let removed = |id: &str| AppEvent::ConversationRemoved { id: id.into() };
        assert!(methods(&mut tracker(json!({})), &removed("a")).is_empty());
        let mut both = tracker(json!({
            "resourcesListChanged": true, "resourceSubscriptions": [resources::uri_of("a")],
        }));
        let expected = ["notifications/resources/updated", "notifications/resources/list_changed"];
        assert_eq!(methods(&mut both, &removed("a")), expected);
        assert_eq!(methods(&mut both, &removed("b")), expected[1..]);
        let changed = AppEvent::ConversationChanged { conversation: resources::test_chat(1) };
        assert_eq!(methods(&mut both, &changed), expected[1..]);
        assert!(methods(&mut both, &changed).is_empty(), "it has the same title");
    }
}
