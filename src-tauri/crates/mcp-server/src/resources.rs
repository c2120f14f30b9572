//! Saved chats as resources: listed in pages, read as Markdown.

use app::App;
use contract::types::ConversationSummary;
use contract::{Error, ErrorKind};
use rmcp::model::{
    ErrorData, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use serde_json::json;

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
pub fn list(app: &App, cursor: Option<&str>) -> Result<ListResourcesResult, ErrorData> {
    let chats = app.conversations_list().map_err(|error| internal(&error))?;
    page(&chats, cursor)
}

fn page(chats: &[ConversationSummary], cursor: Option<&str>) -> Result<ListResourcesResult, ErrorData> {
    let from = match cursor {
        None => 0,
        Some(cursor) => match chats.iter().position(|chat| chat.id == cursor) {
            Some(at) => at + 1,
            None => return Err(ErrorData::invalid_params("The cursor is unknown. List without one.", None)),
        },
    };
    let rest = chats.get(from..).unwrap_or_default();
    let page = &rest[..rest.len().min(PAGE_LEN)];
    let mut result = ListResourcesResult::with_all_items(page.iter().map(resource).collect());
    result.next_cursor = page.last().filter(|_| rest.len() > PAGE_LEN).map(|last| last.id.clone());
    Ok(result)
}

fn resource(chat: &ConversationSummary) -> Resource {
    Resource::new(uri_of(&chat.id), &chat.title)
        .with_title(&chat.title)
        .with_description(format!("A chat with {}.", chat.model))
        .with_mime_type(MIME_TYPE)
}

/// The form of a chat's URI.
pub fn templates() -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new(format!("{URI_PREFIX}{{{TEMPLATE_ARGUMENT}}}"), "conversation")
        .with_title("Saved chat")
        .with_description("A saved chat as Markdown. `list_sessions` gives the ids.")
        .with_mime_type(MIME_TYPE);
    ListResourceTemplatesResult::with_all_items(vec![template])
}

/// A chat as Markdown.
pub fn read(app: &App, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let Some(id) = uri.strip_prefix(URI_PREFIX).filter(|id| !id.is_empty()) else {
        return Err(not_found(uri));
    };
    match app.conversation_markdown(id) {
        Ok(text) => {
            let contents = ResourceContents::text(text, uri).with_mime_type(MIME_TYPE);
            Ok(ReadResourceResult::new(vec![contents]))
        }
        Err(error) if error.kind == ErrorKind::NotFound => Err(not_found(uri)),
        Err(error) => Err(internal(&error)),
    }
}

/// `rmcp` gives it the code of the client's revision.
fn not_found(uri: &str) -> ErrorData {
    ErrorData::resource_not_found(format!("There is no chat at {uri}."), Some(json!({ "uri": uri })))
}

/// An error of the application.
pub fn internal(error: &Error) -> ErrorData {
    let data = json!({ "code": error.code(), "remedy": error.remedy() });
    ErrorData::internal_error(error.message().to_owned(), Some(data))
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
    use rmcp::model::ErrorCode;

    use super::*;

    #[test]
    fn pages_follow_each_other() {
        let chats: Vec<_> = (0..250).map(test_chat).collect();
        let (mut cursor, mut uris, mut n_pages) = (None::<String>, Vec::new(), 0);
        loop {
            let page = page(&chats, cursor.as_deref()).unwrap();
            uris.extend(page.resources.into_iter().map(|it| it.uri));
            n_pages += 1;
            let Some(next) = page.next_cursor else { break };
            cursor = Some(next);
        }
        let expected: Vec<String> = (0..250).map(|id| uri_of(&id.to_string())).collect();
        assert_eq!((n_pages, uris), (3, expected));
        assert_eq!(page(&chats, Some("none")).unwrap_err().code, ErrorCode::INVALID_PARAMS);
        assert!(page(&chats[..100], None).unwrap().next_cursor.is_none());
    }
}
