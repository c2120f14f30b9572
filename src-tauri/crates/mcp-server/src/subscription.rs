//! `subscriptions/listen` of the stateless revision: one request whose answer is a stream of notifications.
//!
//! The acknowledgement comes first. Nothing is sent that the client did not ask for.

use std::collections::{HashMap, HashSet};

use app::App;
use contract::types::AppEvent;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::Sender;

use crate::client_state::MAX_WATCHED;
use crate::resources;
use crate::rpc::{INTERNAL_ERROR, INVALID_PARAMS, RpcError, RpcRequest};

/// The method that begins a subscription.
pub const LISTEN: &str = "subscriptions/listen";

/// The field of `_meta` that names the request of a subscription.
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// The setting with the user's own prompts.
const PROMPTS_SETTING: &str = "prompts";

/// What a client wants to be told of, as far as this server has it: the tools never change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ChangeFilter {
    prompt_list: bool,
    resource_list: bool,
    /// URIs.
    resources: HashSet<String>,
}

impl ChangeFilter {
    fn parse(params: &Map<String, Value>) -> Result<Self, RpcError> {
        let wrong = |what: &str| RpcError::new(INVALID_PARAMS, format!("`notifications{what}."));
        let Some(wanted) = params.get("notifications").and_then(Value::as_object) else {
            return Err(wrong("` is an object with what the client wants to be told of"));
        };
        let flag = |name: &str| match wanted.get(name) {
            None => Ok(false),
            Some(Value::Bool(is_wanted)) => Ok(*is_wanted),
            Some(_) => Err(wrong(&format!(".{name}` is true or false"))),
        };
        let uris = match wanted.get("resourceSubscriptions") {
            None => &Vec::new(),
            Some(Value::Array(uris)) if uris.len() <= MAX_WATCHED => uris,
            Some(_) => {
                return Err(wrong(&format!(
                    ".resourceSubscriptions` is a list of at most {MAX_WATCHED} URIs"
                )));
            }
        };
        let text = |uri: &Value| uri.as_str().map(str::to_owned);
        let resources: Option<HashSet<String>> = uris.iter().map(text).collect();
        flag("toolsListChanged")?;
        Ok(Self {
            prompt_list: flag("promptsListChanged")?,
            resource_list: flag("resourcesListChanged")?,
            resources: resources
                .ok_or_else(|| wrong(".resourceSubscriptions` has an entry that is no text"))?,
        })
    }

    /// What the server tells the client of.
    fn acknowledged(&self) -> Value {
        let mut honoured = Map::new();
        if self.prompt_list {
            honoured.insert("promptsListChanged".into(), json!(true));
        }
        if self.resource_list {
            honoured.insert("resourcesListChanged".into(), json!(true));
        }
        if !self.resources.is_empty() {
            let mut uris: Vec<&String> = self.resources.iter().collect();
            uris.sort();
            honoured.insert("resourceSubscriptions".into(), json!(uris));
        }
        Value::Object(honoured)
    }
}

/// Finds what an event changes for a client.
struct ChangeTracker {
    filter: ChangeFilter,
    /// Titles of the chats by id: a list changes where one comes, goes, or has another title.
    titles: HashMap<String, String>,
}

impl ChangeTracker {
    /// Methods and parameters of the notifications for an event.
    fn changes(&mut self, event: &AppEvent) -> Vec<(&'static str, Value)> {
        let (id, is_other_list) = match event {
            AppEvent::ConversationChanged { conversation } => {
                let before = self.titles.insert(conversation.id.clone(), conversation.title.clone());
                (&conversation.id, before.as_ref() != Some(&conversation.title))
            }
            AppEvent::ConversationRemoved { id } => (id, self.titles.remove(id).is_some()),
            AppEvent::SettingChanged { row } if row.key == PROMPTS_SETTING && self.filter.prompt_list => {
                return vec![("notifications/prompts/list_changed", json!({}))];
            }
            _ => return Vec::new(),
        };
        let uri = resources::uri_of(id);
        let updated = self.filter.resources.contains(&uri);
        let updated = updated.then(|| ("notifications/resources/updated", json!({ "uri": uri })));
        let listed = (is_other_list && self.filter.resource_list)
            .then(|| ("notifications/resources/list_changed", json!({})));
        updated.into_iter().chain(listed).collect()
    }
}

/// Tells the client of what it wants to know, until it leaves or the application ends.
pub async fn listen(app: &App, request: &RpcRequest, outbox: &Sender<Value>) -> Result<Value, RpcError> {
    let filter = ChangeFilter::parse(&request.params)?;
    // Before the list is read: no change lies between the two.
    let mut watch = app.watch_app();
    let acknowledged = json!({ "notifications": filter.acknowledged() });
    let titles = titles(app).await?;
    let mut tracker = ChangeTracker { filter, titles };
    let message = tagged(request, "notifications/subscriptions/acknowledged", acknowledged);
    let mut is_there = outbox.send(message).await.is_ok();
    while is_there {
        let Some(events) = std::future::poll_fn(|context| watch.poll_next(context)).await else { break };
        for (method, params) in events.iter().flat_map(|event| tracker.changes(event)) {
            is_there &= outbox.send(tagged(request, method, params)).await.is_ok();
        }
    }
    Ok(json!({ "_meta": { SUBSCRIPTION_KEY: request.id } }))
}

async fn titles(app: &App) -> Result<HashMap<String, String>, RpcError> {
    let app = app.clone();
    let listed = tokio::task::spawn_blocking(move || app.conversations_list()).await;
    let listed =
        listed.map_err(|panic| RpcError::new(INTERNAL_ERROR, format!("A bug in Inglenook: {panic}.")))?;
    let chats = listed.map_err(|error| resources::internal(&error))?;
    Ok(chats.into_iter().map(|chat| (chat.id, chat.title)).collect())
}

/// A notification that belongs to a subscription.
fn tagged(request: &RpcRequest, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({ SUBSCRIPTION_KEY: request.id });
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(notifications: Value) -> Result<ChangeFilter, RpcError> {
        ChangeFilter::parse(json!({ "notifications": notifications }).as_object().unwrap())
    }

    #[test]
    fn a_filter_acknowledges_what_the_server_has() {
        let all = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
            "resourceSubscriptions": ["b", "a"], "later": 1,
        });
        let expected = json!({
            "promptsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": ["a", "b"],
        });
        assert_eq!(parse(all).unwrap().acknowledged(), expected);
        assert_eq!(parse(json!({})).unwrap().acknowledged(), json!({}));
        let too_many = vec!["a"; MAX_WATCHED + 1];
        for wrong in [
            json!(null),
            json!({ "toolsListChanged": 1 }),
            json!({ "resourceSubscriptions": "a" }),
            json!({ "resourceSubscriptions": [1] }),
            json!({ "resourceSubscriptions": too_many }),
        ] {
            assert_eq!(parse(wrong).unwrap_err().code, INVALID_PARAMS);
        }
    }

    #[test]
    fn only_what_was_asked_for_is_told() {
        let methods = |tracker: &mut ChangeTracker, event: &AppEvent| {
            tracker.changes(event).into_iter().map(|(method, _)| method).collect::<Vec<_>>()
        };
        let removed = AppEvent::ConversationRemoved { id: "a".into() };
        let titles = || HashMap::from([("a".to_owned(), "A".to_owned())]);
        let mut none = ChangeTracker { filter: ChangeFilter::default(), titles: titles() };
        assert!(methods(&mut none, &removed).is_empty());
        let uris = json!([resources::uri_of("a")]);
        let filter = parse(json!({ "resourcesListChanged": true, "resourceSubscriptions": uris })).unwrap();
        let mut both = ChangeTracker { filter, titles: titles() };
        let expected = ["notifications/resources/updated", "notifications/resources/list_changed"];
        assert_eq!(methods(&mut both, &removed), expected);
        let unknown = AppEvent::ConversationRemoved { id: "b".into() };
        assert!(methods(&mut both, &unknown).is_empty(), "it was never listed");
    }
}
