//! The message tree of a conversation: the active branch, versions of a message, removal and undo, and forks.
//!
//! Removed messages are only marked with the message whose removal deleted them, so that undo restores exactly those.

use std::collections::HashSet;

use rusqlite::{Connection, TransactionBehavior, params};

use crate::attachments;
use crate::conversation::{Session, idle_conversation, new_id};
use crate::error::{Result, SessionError};
use crate::table::conversation::{self, ConversationRow};
use crate::table::message::{self, MessageRow};
use crate::table::role::Role;
use crate::table::{attachment, search, token_log};

impl Session {
    /// Reads a message. Errors if it was removed.
    pub fn message(&self, id: &str) -> Result<MessageRow> {
        live_message(&self.db, id)
    }

    /// Conversation of a message, removed or not.
    pub fn conversation_of_message(&self, id: &str) -> Result<String> {
        Ok(message::get(&self.db, id)?.conversation)
    }

    /// Activates the branch through this message, down to the end that was viewed last, or else the newest.
    pub fn activate_branch(&mut self, id: &str) -> Result<ConversationRow> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let row = live_message(&transaction, id)?;
        idle_conversation(&transaction, &row.conversation)?;
        let leaf = end_of_branch(&transaction, id)?;
        set_active_leaf(&transaction, &row.conversation, Some(&leaf))?;
        conversation::bump_revision(&transaction, &row.conversation)?;
        transaction.commit()?;
        self.conversation(&row.conversation)
    }

    /// Activates version number `version` (from 1) of a message.
    pub fn activate_version(&mut self, id: &str, version: u32) -> Result<ConversationRow> {
        let row = live_message(&self.db, id)?;
        let siblings = message::siblings(&self.db, &row)?;
        let chosen = (version as usize).checked_sub(1).and_then(|at| siblings.get(at));
        let Some(chosen) = chosen.cloned() else {
            return Err(SessionError::new(
                "session.no_version",
                format!("Version {version} does not exist: this message has {}.", siblings.len()),
                "Open the chat again.",
            ));
        };
        self.activate_branch(&chosen)
    }

    /// Adds a version of an answer written by the user and activates it. The old version stays.
    pub fn rewrite_answer(&mut self, id: &str, text: &str) -> Result<ConversationRow> {
        let now_ms = self.clock.now_utc_ms();
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let row = live_message(&transaction, id)?;
        idle_conversation(&transaction, &row.conversation)?;
        if row.role != Role::Assistant {
            return Err(SessionError::new(
                "session.not_an_answer",
                "Only answers can be edited without sending them again.",
                "Edit your own message instead.",
            ));
        }
        // No token ids and no figures, since no model wrote it.
        let twin = MessageRow {
            conversation: row.conversation.clone(),
            parent: row.parent,
            role: Role::Assistant,
            text: text.into(),
            model: row.model,
            created_ms: now_ms,
            ..MessageRow::new(new_id(&*self.clock))
        };
        message::insert(&transaction, &twin)?;
        search::put(&transaction, &twin.id, &twin.text)?;
        set_active_leaf(&transaction, &row.conversation, Some(&twin.id))?;
        conversation::touch(&transaction, &row.conversation, now_ms)?;
        transaction.commit()?;
        self.conversation(&row.conversation)
    }

    /// Removes a message and everything after it. Another version becomes active, or else the branch ends before it.
    pub fn remove_message(&mut self, id: &str) -> Result<ConversationRow> {
        let now_ms = self.clock.now_utc_ms();
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let row = live_message(&transaction, id)?;
        let conversation = idle_conversation(&transaction, &row.conversation)?;
        let branch = match &conversation.leaf {
            Some(leaf) => message::branch(&transaction, leaf)?,
            None => Vec::new(),
        };
        let siblings = message::siblings(&transaction, &row)?;
        message::mark_deleted(&transaction, id, now_ms)?;
        if branch.iter().any(|message| message.id == id) {
            let at = siblings.iter().position(|sibling| sibling == id).unwrap_or(0);
            let neighbor = if at > 0 { siblings.get(at - 1) } else { siblings.get(1) };
            let leaf = match (neighbor, &row.parent) {
                (Some(neighbor), _) => Some(end_of_branch(&transaction, neighbor)?),
                (None, parent) => parent.clone(),
            };
            conversation::set_leaf(&transaction, &row.conversation, leaf.as_deref())?;
        }
        conversation::bump_revision(&transaction, &row.conversation)?;
        transaction.commit()?;
        self.conversation(&row.conversation)
    }

    /// Restores what the removal of this message deleted, and activates it. No error if it was not removed.
    pub fn restore_message(&mut self, id: &str) -> Result<ConversationRow> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let row = message::get(&transaction, id)?;
        idle_conversation(&transaction, &row.conversation)?;
        // Its ancestors are restored with it.
        let removals = message::branch(&transaction, id)?.into_iter().filter_map(|row| row.deleted_by);
        for removal in removals {
            message::unmark_deleted(&transaction, &removal)?;
        }
        let leaf = end_of_branch(&transaction, id)?;
        set_active_leaf(&transaction, &row.conversation, Some(&leaf))?;
        conversation::bump_revision(&transaction, &row.conversation)?;
        transaction.commit()?;
        self.conversation(&row.conversation)
    }

    /// Copies the messages from the root to this one into a new conversation, token logs included.
    pub fn fork(&mut self, id: &str, title: &str) -> Result<ConversationRow> {
        let now_ms = self.clock.now_utc_ms();
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let row = live_message(&transaction, id)?;
        let from = conversation::get(&transaction, &row.conversation)?;
        if row.state == message::MessageState::Streaming {
            idle_conversation(&transaction, &from.id)?;
        }
        let copy = ConversationRow {
            title: title.into(),
            created_ms: now_ms,
            updated_ms: now_ms,
            deleted_ms: None,
            pinned: false,
            leaf: None,
            id: new_id(&*self.clock),
            ..from
        };
        conversation::insert(&transaction, &copy)?;
        let mut parent = None;
        let name = |_: &str| new_id(&*self.clock);
        let mut files =
            attachments::IdRemap::new(attachment::of_conversation(&transaction, &row.conversation)?, &name);
        for row in message::branch(&transaction, id)? {
            let attached = files.take(&row.id);
            let logs = token_log::of(&transaction, &row.id)?;
            let twin = MessageRow {
                id: new_id(&*self.clock),
                conversation: copy.id.clone(),
                parent: parent.take(),
                chosen: None,
                ..row
            };
            message::insert(&transaction, &twin)?;
            attachment::insert(&transaction, &twin.id, &attached)?;
            search::put(&transaction, &twin.id, &attachments::searchable_text(&twin.text, &attached))?;
            for log in &logs {
                token_log::put(&transaction, &twin.id, log)?;
            }
            parent = Some(twin.id);
        }
        conversation::set_leaf(&transaction, &copy.id, parent.as_deref())?;
        transaction.commit()?;
        self.conversation(&copy.id)
    }
}

/// A message that was not removed, of a conversation outside the trash.
pub(crate) fn live_message(db: &Connection, id: &str) -> Result<MessageRow> {
    let row = message::get(db, id)?;
    if row.deleted_by.is_some() || conversation::get(db, &row.conversation)?.deleted_ms.is_some() {
        return Err(SessionError::missing("message", id));
    }
    Ok(row)
}

pub(crate) fn has_children(db: &Connection, id: &str) -> Result<bool> {
    Ok(message::newest_child(db, id)?.is_some())
}

/// End of the branch below `id` that was viewed last, or else the newest.
fn end_of_branch(db: &Connection, id: &str) -> Result<String> {
    let mut at = id.to_owned();
    let mut passed = HashSet::new();
    while let Some(child) = message::chosen_child(db, &at)?.or(message::newest_child(db, &at)?) {
        // Damage may have closed a circle.
        if !passed.insert(std::mem::replace(&mut at, child)) {
            break;
        }
    }
    Ok(at)
}

/// Makes `leaf` the end of the active branch. Records at each fork which child the previous branch went through.
pub(crate) fn set_active_leaf(db: &Connection, conversation: &str, leaf: Option<&str>) -> Result<()> {
    let before = conversation::get(db, conversation)?.leaf;
    if let Some(before) = before.filter(|before| leaf != Some(before)) {
        let sql = "WITH RECURSIVE up(id, parent) AS (
                       SELECT id, parent FROM message WHERE id = ?1
                       UNION SELECT message.id, message.parent FROM message JOIN up ON message.id = up.parent)
                   UPDATE message SET chosen = (SELECT up.id FROM up WHERE up.parent = message.id)
                   WHERE id IN (SELECT parent FROM up) AND conversation = ?2
                       AND (SELECT COUNT(*) FROM message AS child WHERE child.parent = message.id) > 1";
        db.prepare_cached(sql)?.execute(params![before, conversation])?;
    }
    conversation::set_leaf(db, conversation, leaf)
}
