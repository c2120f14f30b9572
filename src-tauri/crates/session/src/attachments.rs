//! Files with messages: kept with them, copied with them, gone with them.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Connection;

use crate::conversation::Session;
use crate::error::Result;
use crate::table::attachment::{self, AttachmentRow, MessageAttachments};
use crate::table::document;

/// What a new message brings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewAttachments {
    /// Ids are new; which message has them is not said yet.
    pub attachments: MessageAttachments,
    /// Texts of its files by their SHA-256.
    pub documents: Vec<(String, Arc<str>)>,
}

impl Session {
    /// The text of a file that a message has; None: it is gone.
    pub fn document(&self, sha256: &str) -> Result<Option<String>> {
        document::text(&self.db, sha256)
    }

    /// Any message of it has files.
    pub fn has_attachments(&self, conversation: &str) -> Result<bool> {
        attachment::any(&self.db, conversation)
    }

    /// What a message has.
    pub fn attachments_of(&self, message: &str) -> Result<MessageAttachments> {
        let conversation = self.conversation_of_message(message)?;
        let mut all = attachment::of_conversation(&self.db, &conversation)?;
        Ok(all.remove(message).unwrap_or_default())
    }

    pub fn attachment(&self, id: &str) -> Result<AttachmentRow> {
        attachment::get(&self.db, id)
    }
}

/// Puts what a message brings into its place.
pub(crate) fn insert_new(db: &Connection, message: &str, new: &NewAttachments) -> Result<()> {
    for (sha256, text) in &new.documents {
        document::put(db, sha256, text)?;
    }
    attachment::insert(db, message, &new.attachments)
}

/// What messages have, for copies of them: under ids of their own.
pub(crate) struct IdRemap<'a> {
    /// By message.
    attached: HashMap<String, MessageAttachments>,
    /// New ids of files by old ones.
    ids: HashMap<String, String>,
    name: &'a dyn Fn(&str) -> String,
}

impl<'a> IdRemap<'a> {
    /// `name` makes a file's new id of its old one.
    pub fn new(attached: HashMap<String, MessageAttachments>, name: &'a dyn Fn(&str) -> String) -> Self {
        Self { attached, ids: HashMap::new(), name }
    }

    /// Of a message, parents before their children. A passage of a file that was not copied is left out.
    pub fn of(&mut self, message: &str) -> MessageAttachments {
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

/// A message's text as it is searched: with the names of its files.
pub(crate) fn indexed(text: &str, attached: &MessageAttachments) -> String {
    let mut indexed = text.to_owned();
    for file in &attached.files {
        indexed.push('\n');
        indexed.push_str(&file.name);
    }
    indexed
}
