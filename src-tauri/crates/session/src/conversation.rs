//! The conversations: trees of messages, of which one branch is active.
//!
//! Guarantees that the user's message is on disk before `start` returns, that an answer is saved as it
//! grows, and that an answer whose writer died is found as `Interrupted` with what was saved.

use std::path::Path;
use std::sync::Arc;

use io::{Clock, Io};
use rusqlite::{Connection, TransactionBehavior};
use uuid::{NoContext, Timestamp, Uuid};

use crate::db::{self, LastExit, Notice};
use crate::error::{Result, SessionError};
use crate::owner::Owner;
use crate::table::conversation::{self, ConversationRow};
use crate::table::message::{self, MessageRow, MessageState, Role};
use crate::table::model::{self, ModelRow};
use crate::table::token_log::{self, TokenLog};
use crate::table::turn::{self, TurnRow};
use crate::table::{chunk, setting};

/// How long a deleted conversation stays in the trash.
const TRASH_MS: i64 = 30 * 24 * 3600 * 1000;

/// The kept conversations, settings and library entries: one writer.
pub struct Session {
    db: Connection,
    owner: Owner,
    clock: Arc<dyn Clock>,
}

/// A conversation with its active branch.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    pub conversation: ConversationRow,
    /// Root first.
    pub messages: Vec<BranchMessage>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct BranchMessage {
    pub row: MessageRow,
    /// This is version `version` of `versions` under its parent, from 1.
    pub version: u32,
    pub versions: u32,
    /// Ids that models generated for it.
    pub logs: Vec<TokenLog>,
}

/// What is to be answered.
#[derive(Debug, Clone, Copy)]
pub enum NewTurn<'a> {
    /// A new message at the end of the active branch; without a conversation, in a new one.
    Message { conversation: Option<&'a str>, title: &'a str, text: &'a str },
    /// The last user message again: a new version of its answer.
    Retry { conversation: &'a str },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    pub turn: String,
    pub conversation: String,
    pub user_message: String,
    pub assistant_message: String,
}

/// How an answer ended.
#[derive(Debug, Clone)]
pub struct Ending<'a> {
    pub state: MessageState,
    pub text: &'a str,
    pub reasoning: &'a str,
    /// JSON.
    pub tool_calls: Option<String>,
    /// JSON.
    pub stats: Option<String>,
    /// JSON.
    pub error: Option<String>,
    pub log: Option<TokenLog>,
}

impl Session {
    /// Opens what lies in `folder`, or begins it. Notices tell of damage that was mended.
    pub fn open(folder: &Path, io: &dyn Io, clock: Arc<dyn Clock>) -> Result<(Self, Vec<Notice>)> {
        io.create_dir_all(folder)?;
        let owner = Owner::take(&folder.join("running"), new_id(&*clock), io)?;
        let others = owner.others(io)?;
        let last = if others.died && !others.alive { LastExit::Unclean } else { LastExit::Clean };
        let (db, notices) = db::open(&folder.join("inglenook.db"), last, io, &*clock)?;
        let mut session = Self { db, owner, clock };
        session.recover()?;
        conversation::purge(&session.db, session.clock.now_utc_ms() - TRASH_MS)?;
        Ok((session, notices))
    }

    /// Answers whose writer died become `Interrupted`; the conversations they are in.
    pub fn recover(&mut self) -> Result<Vec<String>> {
        let mut mended = Vec::new();
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for row in turn::all(&transaction)? {
            if !self.owner.is_alive(&row.owner)? {
                turn::remove_of_message(&transaction, &row.message)?;
                mended.push(row.conversation);
            }
        }
        for id in message::orphans(&transaction)? {
            let (text, reasoning) = chunk::fold(&transaction, &id)?;
            let row = message::get(&transaction, &id)?;
            message::finish(
                &transaction,
                &MessageRow { text, reasoning, state: MessageState::Interrupted, ..row },
            )?;
            chunk::clear(&transaction, &id)?;
        }
        transaction.commit()?;
        Ok(mended)
    }

    // ---- conversations ----

    /// Newest first, without the trash.
    pub fn conversations(&self) -> Result<Vec<ConversationRow>> {
        conversation::list(&self.db)
    }

    /// Not one that lies in the trash.
    pub fn conversation(&self, id: &str) -> Result<ConversationRow> {
        let row = conversation::get(&self.db, id)?;
        if row.deleted_ms.is_some() {
            return Err(SessionError::missing("conversation", id));
        }
        Ok(row)
    }

    /// The turn of this process that is answering in it.
    pub fn active_turn(&self, conversation: &str) -> Result<Option<String>> {
        let row = turn::of_conversation(&self.db, conversation)?;
        Ok(row.filter(|row| row.owner == self.owner.id).map(|row| row.id))
    }

    /// Conversation and turn of all that this process is answering.
    pub fn active_turns(&self) -> Result<Vec<(String, String)>> {
        let rows = turn::all(&self.db)?.into_iter().filter(|row| row.owner == self.owner.id);
        Ok(rows.map(|row| (row.conversation, row.id)).collect())
    }

    pub fn branch(&self, id: &str) -> Result<Branch> {
        let conversation = self.conversation(id)?;
        let rows = match &conversation.leaf {
            Some(leaf) => message::branch(&self.db, leaf)?,
            None => Vec::new(),
        };
        let mut messages = Vec::with_capacity(rows.len());
        for mut row in rows {
            if row.state == MessageState::Streaming {
                (row.text, row.reasoning) = chunk::fold(&self.db, &row.id)?;
            }
            let (version, versions) = message::version(&self.db, &row)?;
            let logs = token_log::of(&self.db, &row.id)?;
            messages.push(BranchMessage { row, version, versions, logs });
        }
        Ok(Branch { conversation, messages })
    }

    pub fn rename(&mut self, id: &str, title: &str) -> Result<ConversationRow> {
        self.conversation(id)?;
        conversation::set_title(&self.db, id, title)?;
        self.conversation(id)
    }

    pub fn set_model(&mut self, id: &str, model: &str) -> Result<ConversationRow> {
        self.conversation(id)?;
        conversation::set_model(&self.db, id, model)?;
        self.conversation(id)
    }

    /// Into the trash.
    pub fn delete(&mut self, id: &str) -> Result<()> {
        self.conversation(id)?;
        conversation::set_deleted(&self.db, id, Some(self.clock.now_utc_ms()))
    }

    /// Out of the trash; no error if it is not there.
    pub fn restore(&mut self, id: &str) -> Result<ConversationRow> {
        conversation::get(&self.db, id)?;
        conversation::set_deleted(&self.db, id, None)?;
        self.conversation(id)
    }

    // ---- turns ----

    /// Saves the question and an empty answer that is being written. Refused while another one is.
    pub fn start(&mut self, new: NewTurn, model: &str) -> Result<Started> {
        self.recover()?;
        let now_ms = self.clock.now_utc_ms();
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let make = || new_id(&*self.clock);
        let (conversation, user_message) = match new {
            NewTurn::Message { conversation: None, title, text } => {
                let row = ConversationRow {
                    id: make(),
                    title: title.into(),
                    model: model.into(),
                    leaf: None,
                    created_ms: now_ms,
                    updated_ms: now_ms,
                    deleted_ms: None,
                };
                conversation::insert(&transaction, &row)?;
                let message = say(&transaction, &row, make(), text, now_ms)?;
                (row.id, message)
            }
            NewTurn::Message { conversation: Some(id), text, .. } => {
                let row = free(&transaction, id)?;
                let message = say(&transaction, &row, make(), text, now_ms)?;
                (row.id, message)
            }
            NewTurn::Retry { conversation: id } => {
                let row = free(&transaction, id)?;
                let message = last_question(&transaction, &row)?;
                (row.id, message)
            }
        };
        let started = Started { turn: make(), conversation, user_message, assistant_message: make() };
        message::insert(
            &transaction,
            &MessageRow {
                id: started.assistant_message.clone(),
                conversation: started.conversation.clone(),
                parent: Some(started.user_message.clone()),
                role: Role::Assistant,
                text: String::new(),
                reasoning: String::new(),
                tool_calls: None,
                state: MessageState::Streaming,
                error: None,
                model: Some(model.into()),
                stats: None,
                created_ms: now_ms,
            },
        )?;
        turn::insert(
            &transaction,
            &TurnRow {
                id: started.turn.clone(),
                conversation: started.conversation.clone(),
                message: started.assistant_message.clone(),
                owner: self.owner.id.clone(),
            },
        )?;
        conversation::set_leaf(&transaction, &started.conversation, &started.assistant_message)?;
        conversation::touch(&transaction, &started.conversation, now_ms)?;
        transaction.commit()?;
        Ok(started)
    }

    /// A piece of the answer that is being written.
    pub fn append(&mut self, message: &str, text: &str, reasoning: &str) -> Result<()> {
        chunk::append(&self.db, message, text, reasoning)
    }

    /// The end of an answer: its pieces are folded into it.
    pub fn finish(&mut self, id: &str, ending: &Ending) -> Result<()> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let row = message::get(&transaction, id)?;
        let ended = MessageRow {
            text: ending.text.into(),
            reasoning: ending.reasoning.into(),
            state: ending.state,
            tool_calls: ending.tool_calls.clone(),
            stats: ending.stats.clone(),
            error: ending.error.clone(),
            ..row
        };
        message::finish(&transaction, &ended)?;
        if let Some(log) = &ending.log {
            token_log::put(&transaction, id, log)?;
        }
        chunk::clear(&transaction, id)?;
        turn::remove_of_message(&transaction, id)?;
        conversation::touch(&transaction, &ended.conversation, self.clock.now_utc_ms())?;
        transaction.commit()?;
        Ok(())
    }

    // ---- settings and library ----

    /// JSON, where it differs from the default.
    pub fn setting(&self, key: &str) -> Result<Option<String>> {
        setting::get(&self.db, key)
    }

    pub fn set_setting(&mut self, key: &str, json: &str) -> Result<()> {
        setting::put(&self.db, key, json)
    }

    pub fn reset_setting(&mut self, key: &str) -> Result<()> {
        setting::remove(&self.db, key)
    }

    pub fn models(&self) -> Result<Vec<ModelRow>> {
        model::list(&self.db)
    }

    pub fn put_model(&mut self, row: &ModelRow) -> Result<()> {
        model::put(&self.db, row)
    }

    pub fn remove_model(&mut self, id: &str) -> Result<bool> {
        model::remove(&self.db, id)
    }

    pub fn new_id(&self) -> String {
        new_id(&*self.clock)
    }

    pub(crate) fn db(&self) -> &Connection {
        &self.db
    }
}

/// UUIDv7: sorts by the time of its making.
fn new_id(clock: &dyn Clock) -> String {
    let ms = u64::try_from(clock.now_utc_ms()).unwrap_or(0);
    let nanos = (ms % 1000) as u32 * 1_000_000;
    Uuid::new_v7(Timestamp::from_unix(NoContext, ms / 1000, nanos)).to_string()
}

/// The conversation, if nothing is being written in it.
fn free(db: &Connection, id: &str) -> Result<ConversationRow> {
    let row = conversation::get(db, id)?;
    if row.deleted_ms.is_some() {
        return Err(SessionError::missing("conversation", id));
    }
    if turn::of_conversation(db, id)?.is_some() {
        return Err(SessionError::new(
            "session.answering",
            "An answer is being written in this conversation.",
            "Wait for its end, or stop it.",
        ));
    }
    Ok(row)
}

fn say(db: &Connection, row: &ConversationRow, id: String, text: &str, now_ms: i64) -> Result<String> {
    let message = MessageRow {
        id,
        conversation: row.id.clone(),
        parent: row.leaf.clone(),
        role: Role::User,
        text: text.into(),
        reasoning: String::new(),
        tool_calls: None,
        state: MessageState::Complete,
        error: None,
        model: None,
        stats: None,
        created_ms: now_ms,
    };
    message::insert(db, &message)?;
    Ok(message.id)
}

/// The user message that the active branch ends with or answers last.
fn last_question(db: &Connection, row: &ConversationRow) -> Result<String> {
    let branch = match &row.leaf {
        Some(leaf) => message::branch(db, leaf)?,
        None => Vec::new(),
    };
    branch
        .iter()
        .rev()
        .find(|message| message.role == Role::User)
        .map(|message| message.id.clone())
        .ok_or_else(|| {
            SessionError::new(
                "session.nothing_to_retry",
                "There is no question to answer again.",
                "Write a message first.",
            )
        })
}
