//! What programs stored over HTTP, as JSON: chat completions, responses, conversations and their items, batches and
//! their results, entries of files and uploads.

use contract::{Error, Result};
use serde_json::Value;
use session::ApiObjectRow;

use crate::App;

/// Kind of a stored object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiObjectKind {
    ChatCompletion,
    Response,
    Conversation,
    ConversationItem,
    MessageBatch,
    MessageBatchResult,
    Batch,
    File,
    Upload,
    UploadPart,
}

impl ApiObjectKind {
    /// Its word in the database.
    fn word(self) -> &'static str {
        match self {
            Self::ChatCompletion => "chat.completion",
            Self::Response => "response",
            Self::Conversation => "conversation",
            Self::ConversationItem => "conversation.item",
            Self::MessageBatch => "message_batch",
            Self::MessageBatchResult => "message_batch.result",
            Self::Batch => "batch",
            Self::File => "file",
            Self::Upload => "upload",
            Self::UploadPart => "upload.part",
        }
    }
}

/// A stored object.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiObject {
    pub id: String,
    pub kind: ApiObjectKind,
    /// Id of the key that stored it (its id); other keys don't see it.
    pub owner: String,
    /// The conversation of an item, the batch of a result, the upload of a part.
    pub parent: Option<String>,
    pub body: Value,
    pub created_ms: i64,
}

impl App {
    /// Stores new objects, or replaces the bodies of those that exist; all of them or none.
    pub fn put_api_objects(&self, objects: Vec<ApiObject>) -> Result<()> {
        let row = |object: ApiObject| ApiObjectRow {
            id: object.id,
            kind: object.kind.word().into(),
            owner: object.owner,
            parent: object.parent,
            body: object.body.to_string(),
            created_ms: object.created_ms,
        };
        let rows: Vec<ApiObjectRow> = objects.into_iter().map(row).collect();
        Ok(self.store().put_api_objects(&rows)?)
    }

    /// One of the owner's objects.
    pub fn api_object(&self, kind: ApiObjectKind, owner: &str, id: &str) -> Result<Option<ApiObject>> {
        let row = self.store().api_object(kind.word(), owner, id)?;
        row.map(|row| object(row, kind)).transpose()
    }

    /// The owner's objects of a kind, oldest first; those of one parent if it is given. One that can't be read is
    /// left out.
    pub fn api_objects(
        &self,
        kind: ApiObjectKind,
        owner: &str,
        parent: Option<&str>,
    ) -> Result<Vec<ApiObject>> {
        let rows = self.store().api_objects(kind.word(), owner, parent)?;
        Ok(rows.into_iter().filter_map(|row| object(row, kind).ok()).collect())
    }

    /// Removes an object with its children. False if the owner has none with that id.
    pub fn remove_api_object(&self, kind: ApiObjectKind, owner: &str, id: &str) -> Result<bool> {
        Ok(self.store().remove_api_object(kind.word(), owner, id)?)
    }
}

fn object(row: ApiObjectRow, kind: ApiObjectKind) -> Result<ApiObject> {
    let ApiObjectRow { id, owner, parent, body, created_ms, .. } = row;
    let body = serde_json::from_str(&body).map_err(|error| {
        let message = format!("The stored object {id} can't be read: {error}.");
        Error::input("api.unreadable_object", message, "Delete it and create it again.")
    })?;
    Ok(ApiObject { id, kind, owner, parent, body, created_ms })
}
