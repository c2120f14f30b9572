//! Saved chats as resources: listed in pages, read as Markdown.

use app::App;
use contract::types::ConversationSummary;
use contract::{Error, ErrorKind};
use serde_json::{Value, json};

use crate::rpc::{INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError};

/// Name of the argument of the form of a chat's URI.
pub const TEMPLATE_ARGUMENT: &str = "id";

/// URIs are this and the id of a chat.
const URI_PREFIX: &str = "inglenook://conversations/";

const MIME_TYPE: &str = "text/markdown";

/// Chats of one page; a client asks for the next with a cursor.
const PAGE_LEN: usize = 100;

/// The URI of a chat.
pub fn uri_of(id: &str) -> String {
    format!("{URI_PREFIX}{id}")
}

/// One page of saved chats, the most recently used first. The cursor is the id of the last chat of the page before.
pub fn list(app: &App, cursor: Option<&str>) -> Result<Value, RpcError> {
    let chats = app.conversations_list().map_err(|error| internal(&error))?;
    page(&chats, cursor)
}

fn page(chats: &[ConversationSummary], cursor: Option<&str>) -> Result<Value, RpcError> {
    let from = match cursor {
        None => 0,
        Some(cursor) => match chats.iter().position(|chat| chat.id == cursor) {
            Some(at) => at + 1,
            None => {
                return Err(RpcError::new(INVALID_PARAMS, "The cursor is unknown. List without one."));
            }
        },
    };
    let rest = chats.get(from..).unwrap_or_default();
    let page = &rest[..rest.len().min(PAGE_LEN)];
    let resources: Vec<Value> = page.iter().map(resource).collect();
    let mut result = json!({ "resources": resources });
    if let Some(last) = page.last().filter(|_| rest.len() > PAGE_LEN) {
        result["nextCursor"] = json!(last.id);
    }
    Ok(result)
}

fn resource(chat: &ConversationSummary) -> Value {
    json!({
        "uri": uri_of(&chat.id),
        "name": chat.title,
        "title": chat.title,
        "description": format!("A chat with {}.", chat.model),
        "mimeType": MIME_TYPE,
    })
}

/// The form of a chat's URI.
pub fn templates() -> Value {
    json!({ "resourceTemplates": [{
        "uriTemplate": format!("{URI_PREFIX}{{{TEMPLATE_ARGUMENT}}}"),
        "name": "conversation",
        "title": "Saved chat",
        "description": "A saved chat as Markdown. `list_sessions` gives the ids.",
        "mimeType": MIME_TYPE,
    }] })
}

/// A chat as Markdown.
pub fn read(app: &App, uri: &str) -> Result<Value, RpcError> {
    let Some(id) = uri.strip_prefix(URI_PREFIX).filter(|id| !id.is_empty()) else {
        return Err(not_found(uri));
    };
    match app.conversation_markdown(id) {
        Ok(text) => Ok(json!({ "contents": [{ "uri": uri, "mimeType": MIME_TYPE, "text": text }] })),
        Err(error) if error.kind == ErrorKind::NotFound => Err(not_found(uri)),
        Err(error) => Err(internal(&error)),
    }
}

fn not_found(uri: &str) -> RpcError {
    RpcError::new(RESOURCE_NOT_FOUND, format!("There is no chat at {uri}.")).with_data(json!({ "uri": uri }))
}

/// An error of the application.
pub fn internal(error: &Error) -> RpcError {
    RpcError::new(INTERNAL_ERROR, error.message())
        .with_data(json!({ "code": error.code(), "remedy": error.remedy() }))
}

#[cfg(test)]
pub fn test_chat(id: usize) -> ConversationSummary {
    ConversationSummary {
        id: id.to_string(),
        title: format!("Chat {id}"),
        model: "starter".into(),
        created_ms: 0,
        updated_ms: 0,
        active_turn: None,
        folder: None,
        pinned: false,
        deleted_ms: None,
        activity: 0,
        revision: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other() {
        let chats: Vec<_> = (0..250).map(test_chat).collect();
        let (mut cursor, mut uris, mut n_pages) = (None::<String>, Vec::new(), 0);
        loop {
            let page = page(&chats, cursor.as_deref()).unwrap();
            let listed = page["resources"].as_array().unwrap();
            uris.extend(listed.iter().map(|it| it["uri"].as_str().unwrap().to_owned()));
            n_pages += 1;
            let Some(next) = page["nextCursor"].as_str() else { break };
            cursor = Some(next.to_owned());
        }
        let expected: Vec<String> = (0..250).map(|id| uri_of(&id.to_string())).collect();
        assert_eq!((n_pages, uris), (3, expected));
        assert_eq!(page(&chats, Some("none")).unwrap_err().code, INVALID_PARAMS);
        assert!(page(&chats[..100], None).unwrap().get("nextCursor").is_none());
    }
}
