//! The tree under a conversation: which branch is looked at, versions side by side, branches that go and
//! come back, and a branch copied into a conversation of its own.
//!
//! What is removed is only marked, with the message whose removal took it: undo finds exactly that again.

use rusqlite::{Connection, TransactionBehavior, params};

use crate::attachments;
use crate::conversation::{Session, new_id};
use crate::error::{Result, SessionError};
use crate::table::conversation::{self, ConversationRow};
use crate::table::message::{self, MessageRow, Role};
use crate::table::{attachment, search, token_log};
use crate::turns::idle_conversation;

impl Session {
    /// A message that has not been removed.
    pub fn message(&self, id: &str) -> Result<MessageRow> {
        live_message(&self.db, id)
    }

    /// The conversation of a message, removed or not.
    pub fn conversation_of_message(&self, id: &str) -> Result<String> {
        Ok(message::get(&self.db, id)?.conversation)
    }

    /// Makes the branch through this message the active one: down to where it was looked at last, else to its
    /// newest end.
    pub fn activate_branch(&mut self, id: &str) -> Result<ConversationRow> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let row = live_message(&transaction, id)?;
        idle_conversation(&transaction, &row.conversation)?;
        let leaf = end_of(&transaction, id)?;
        move_leaf(&transaction, &row.conversation, Some(&leaf))?;
        conversation::changed(&transaction, &row.conversation)?;
        transaction.commit()?;
        self.conversation(&row.conversation)
    }

    /// The `version`th (from 1) of the messages beside this one becomes the active one.
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

    /// Another version of an answer, in the user's own words; it is looked at from now on, and the old one stays.
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
        // No ids of tokens and no figures: no model wrote it so.
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
        move_leaf(&transaction, &row.conversation, Some(&twin.id))?;
        conversation::touch(&transaction, &row.conversation, now_ms)?;
        transaction.commit()?;
        self.conversation(&row.conversation)
    }

    /// Removes a message and everything after it. Another version takes its place, else the branch ends before it.
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
            let beside = if at > 0 { siblings.get(at - 1) } else { siblings.get(1) };
            let leaf = match (beside, &row.parent) {
                (Some(beside), _) => Some(end_of(&transaction, beside)?),
                (None, parent) => parent.clone(),
            };
            conversation::set_leaf(&transaction, &row.conversation, leaf.as_deref())?;
        }
        conversation::changed(&transaction, &row.conversation)?;
        transaction.commit()?;
        self.conversation(&row.conversation)
    }

    /// What the removal of this message took comes back and is looked at. No error if it is there.
    pub fn restore_message(&mut self, id: &str) -> Result<ConversationRow> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let row = message::get(&transaction, id)?;
        idle_conversation(&transaction, &row.conversation)?;
        // What it hangs on comes back with it.
        let removals = message::branch(&transaction, id)?.into_iter().filter_map(|row| row.deleted_by);
        for removal in removals {
            message::unmark_deleted(&transaction, &removal)?;
        }
        let leaf = end_of(&transaction, id)?;
        move_leaf(&transaction, &row.conversation, Some(&leaf))?;
        conversation::changed(&transaction, &row.conversation)?;
        transaction.commit()?;
        self.conversation(&row.conversation)
    }

    /// A new conversation with the messages from the root to this one, their ids of tokens included.
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
            let attached = files.of(&row.id);
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
            search::put(&transaction, &twin.id, &attachments::indexed(&twin.text, &attached))?;
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

/// A message that has not been removed, in a conversation that is not in the trash.
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

/// Where the branch from `id` down was looked at last, else its newest end.
fn end_of(db: &Connection, id: &str) -> Result<String> {
    let mut at = id.to_owned();
    // A child is newer than its parent: the way down ends.
    while let Some(child) = message::chosen_child(db, &at)?.or(message::newest_child(db, &at)?) {
        at = child;
    }
    Ok(at)
}

/// The active branch ends at `leaf` from now on; which way the last one went is remembered at each fork.
pub(crate) fn move_leaf(db: &Connection, conversation: &str, leaf: Option<&str>) -> Result<()> {
    let before = conversation::get(db, conversation)?.leaf;
    if let Some(before) = before.filter(|before| leaf != Some(before)) {
        let sql = "WITH RECURSIVE up(id, parent) AS (
                       SELECT id, parent FROM message WHERE id = ?1
                       UNION ALL SELECT message.id, message.parent FROM message JOIN up ON message.id = up.parent)
                   UPDATE message SET chosen = (SELECT up.id FROM up WHERE up.parent = message.id)
                   WHERE id IN (SELECT parent FROM up) AND conversation = ?2
                       AND (SELECT COUNT(*) FROM message AS child WHERE child.parent = message.id) > 1";
        db.prepare_cached(sql)?.execute(params![before, conversation])?;
    }
    conversation::set_leaf(db, conversation, leaf)
}
