//! Files attached to messages: stored, copied and deleted together with them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;

use crate::conversation::Session;
use crate::error::Result;
use crate::table::attachment::{self, AttachmentRow, MessageAttachments};
use crate::table::document;

/// Attachments of a message that is about to be stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewAttachments {
    /// Files and passages with new ids; their `message` is still empty.
    pub attachments: MessageAttachments,
    /// Texts of the files by SHA-256.
    pub documents: Vec<(String, Arc<str>)>,
}

impl Session {
    /// Text of an attached file; None if it was deleted.
    pub fn document(&self, sha256: &str) -> Result<Option<String>> {
        document::text(&self.db, sha256)
    }

    /// Texts of the documents of all attachments of a kind.
    pub fn documents_of_kind(&self, kind: &str) -> Result<Vec<String>> {
        document::of_kind(&self.db, kind)
    }

    /// The data folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether any message of the conversation has files.
    pub fn has_attachments(&self, conversation: &str) -> Result<bool> {
        attachment::any(&self.db, conversation)
    }

    /// Attachments of a message.
    pub fn attachments_of(&self, message: &str) -> Result<MessageAttachments> {
        let conversation = self.conversation_of_message(message)?;
        let mut all = attachment::of_conversation(&self.db, &conversation)?;
        Ok(all.remove(message).unwrap_or_default())
    }

    /// An attachment by its id.
    pub fn attachment(&self, id: &str) -> Result<AttachmentRow> {
        attachment::get(&self.db, id)
    }
}

/// Stores the attachments of a new message.
pub(crate) fn insert_new(db: &Connection, message: &str, new: &NewAttachments) -> Result<()> {
    for (sha256, text) in &new.documents {
        document::put(db, sha256, text)?;
    }
    attachment::insert(db, message, &new.attachments)
}

/// Gives the attachments of copied messages new ids, so that passages refer to the copied files.
pub(crate) struct IdRemap<'a> {
    /// Attachments by message.
    attached: HashMap<String, MessageAttachments>,
    /// New file ids by old ones.
    ids: HashMap<String, String>,
    name: &'a dyn Fn(&str) -> String,
}

impl<'a> IdRemap<'a> {
    /// `name` returns a file's new id for its old one.
    pub fn new(attached: HashMap<String, MessageAttachments>, name: &'a dyn Fn(&str) -> String) -> Self {
        Self { attached, ids: HashMap::new(), name }
    }

    /// Attachments for the copy of a message. Call it for parents before children; passages of files that were not copied
    /// are left out.
    pub fn take(&mut self, message: &str) -> MessageAttachments {
        let mut attached = self.attached.remove(message).unwrap_or_default();
        for file in &mut attached.files {
            let id = (self.name)(&file.id);
            self.ids.insert(std::mem::replace(&mut file.id, id.clone()), id);
        }
        attached.passages.retain_mut(|passage| {
            let id = self.ids.get(&passage.attachment).cloned();
            id.map(|id| passage.attachment = id).is_some()
        });
        attached
    }
}

/// Searchable text of a message: its text and the names of its files.
pub(crate) fn searchable_text(text: &str, attached: &MessageAttachments) -> String {
    let mut indexed = text.to_owned();
    for file in &attached.files {
        indexed.push('\n');
        indexed.push_str(&file.name);
    }
    indexed
}
