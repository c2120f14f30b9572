//! The items before a request's own: those of a stored response and its predecessors, or of a conversation.

use app::{ApiObject, ApiObjectKind, App};
use contract::Error;
use serde_json::{Value, json};

use super::request::ResponseState;
use crate::fault::OpenAiFault;
use crate::openai::fields::Result;
use crate::openai::{blocking, no_such, now_ms};

/// Responses that may follow each other; far beyond any conversation.
const MAX_PREDECESSORS: usize = 10_000;

/// Why items can't be read.
enum ContextFault {
    NoResponse(String),
    NoConversation(String),
    Other(Error),
}

impl From<Error> for ContextFault {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// The items of a state, oldest first.
pub async fn items_before(app: App, owner: String, state: ResponseState) -> Result<Vec<Value>> {
    let outcome = blocking(move || match read(&app, &owner, &state) {
        Ok(items) => Ok(Ok(items)),
        Err(ContextFault::Other(error)) => Err(error),
        Err(fault) => Ok(Err(fault)),
    })
    .await?;
    outcome.map_err(|fault| match fault {
        ContextFault::NoResponse(id) => OpenAiFault {
            code: Some("previous_response_not_found".into()),
            ..OpenAiFault::invalid(
                "previous_response_id",
                format!("There is no previous response with the id {id}."),
            )
        },
        ContextFault::NoConversation(id) => {
            OpenAiFault { param: Some("conversation".into()), ..no_such("conversation", &id) }
        }
        ContextFault::Other(error) => error.into(),
    })
}

fn read(app: &App, owner: &str, state: &ResponseState) -> std::result::Result<Vec<Value>, ContextFault> {
    match state {
        ResponseState::None => Ok(Vec::new()),
        ResponseState::Conversation(id) => conversation_items(app, owner, id),
        ResponseState::Previous(id) => chain(app, owner, id),
    }
}

fn conversation_items(app: &App, owner: &str, id: &str) -> std::result::Result<Vec<Value>, ContextFault> {
    if app.api_object(ApiObjectKind::Conversation, owner, id)?.is_none() {
        return Err(ContextFault::NoConversation(id.into()));
    }
    let items = app.api_objects(ApiObjectKind::ConversationItem, owner, Some(id))?;
    Ok(items.into_iter().map(|item| item.body).collect())
}

/// Items of a response and of those before it.
fn chain(app: &App, owner: &str, last: &str) -> std::result::Result<Vec<Value>, ContextFault> {
    let mut parts = Vec::new();
    let mut next = Some(last.to_owned());
    while let Some(id) = next.take() {
        let Some(object) = app.api_object(ApiObjectKind::Response, owner, &id)? else {
            return Err(ContextFault::NoResponse(id));
        };
        let mut own = list(&object.body["input"]);
        own.extend(list(&object.body["response"]["output"]));
        if let Some(conversation) = object.body["response"]["conversation"]["id"].as_str() {
            parts.push(until_own(conversation_items(app, owner, conversation)?, own));
            break;
        }
        parts.push(own);
        next = object.body["response"]["previous_response_id"].as_str().map(str::to_owned);
        if parts.len() >= MAX_PREDECESSORS {
            break;
        }
    }
    Ok(parts.into_iter().rev().flatten().collect())
}

/// Items of a conversation before those that a response added to it, then these.
fn until_own(mut items: Vec<Value>, own: Vec<Value>) -> Vec<Value> {
    let is_own = |item: &Value| own.iter().any(|own| own["id"] == item["id"]);
    let n_before = items.iter().position(is_own).unwrap_or(items.len());
    items.truncate(n_before);
    items.extend(own);
    items
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// What storing a response needs besides the response.
#[derive(Debug, Clone)]
pub struct ResponseRecord {
    pub owner: String,
    /// New items, with ids.
    pub input: Vec<Value>,
    pub is_stored: bool,
    /// Gets the items of the response.
    pub conversation: Option<String>,
}

impl ResponseRecord {
    /// Stores a response, and the items that it adds to its conversation once it is complete.
    pub fn save(&self, app: &App, response: &Value) -> contract::Result<()> {
        let object = |kind, id: &Value, parent, body| ApiObject {
            id: id.as_str().unwrap_or_default().into(),
            kind,
            owner: self.owner.clone(),
            parent,
            body,
            created_ms: now_ms(),
        };
        let mut objects = Vec::new();
        if self.is_stored {
            let body = json!({ "response": response, "input": self.input });
            objects.push(object(ApiObjectKind::Response, &response["id"], None, body));
        }
        let is_whole = matches!(response["status"].as_str(), Some("completed" | "incomplete"));
        if let Some(conversation) = self.conversation.as_ref().filter(|_| is_whole) {
            let output = response["output"].as_array().into_iter().flatten();
            objects.extend(self.input.iter().chain(output).map(|item| {
                object(ApiObjectKind::ConversationItem, &item["id"], Some(conversation.clone()), item.clone())
            }));
        }
        app.put_api_objects(objects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_responses_items_come_after_those_before_it() {
        let item = |id: &str| json!({ "id": id });
        let conversation = vec![item("1"), item("2"), item("3"), item("4")];
        let own = vec![item("2"), item("3")];
        assert_eq!(until_own(conversation.clone(), own), [item("1"), item("2"), item("3")]);
        let deleted = vec![item("9")];
        assert_eq!(until_own(conversation, deleted).len(), 5);
    }
}
