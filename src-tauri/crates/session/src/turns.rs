//! Turns: a question and the answer that is being written to it, from the first row to the last.
//!
//! Guarantees that the question is on disk before `start` returns, that an answer that goes on loses nothing
//! of what it had, and that one conversation has one writer.

use rusqlite::{Connection, TransactionBehavior};

use crate::attachments::{self, NewAttachments};
use crate::conversation::{Session, new_id};
use crate::error::{Result, SessionError};
use crate::table::chunk::{self, AnswerChunk};
use crate::table::conversation::{self, ConversationRow};
use crate::table::message::{self, MessageRow, MessageState, Role};
use crate::table::search;
use crate::table::token_log::{self, TokenLog};
use crate::table::turn::{self, TurnRow};
use crate::tree;

/// What is to be answered.
#[derive(Debug, Clone, Copy)]
pub enum NewTurn<'a> {
    /// A new message at the end of the active branch; without a conversation, in a new one.
    Message {
        conversation: Option<&'a str>,
        title: &'a str,
        text: &'a str,
        attachments: Option<&'a NewAttachments>,
    },
    /// Another version of a user message: a branch begins there.
    Edit { message: &'a str, text: &'a str, attachments: Option<&'a NewAttachments> },
    /// The last user message of the active branch again: a new version of its answer.
    Retry { conversation: &'a str },
    /// A new version of this answer, or of the answer to this question.
    Regenerate { message: &'a str },
    /// This answer goes on where it ended.
    Continue { message: &'a str },
    /// What the tools said that this answer called is answered: the next answer hangs on it.
    ToolResults { message: &'a str },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedTurn {
    pub turn: String,
    pub conversation: String,
    pub user_message: String,
    pub assistant_message: String,
}

/// How an answer ended.
#[derive(Debug, Clone)]
pub struct TurnEnding<'a> {
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

/// Where an answer goes: into a message of its own, or on from what a message has.
struct Target {
    conversation: String,
    question: String,
    /// The message that goes on.
    answer: Option<MessageRow>,
}

impl Session {
    /// Saves the question and an empty answer that is being written. Refused while another one is.
    pub fn start(&mut self, new: NewTurn, model: &str) -> Result<StartedTurn> {
        self.recover()?;
        let now_ms = self.clock.now_utc_ms();
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let make = || new_id(&*self.clock);
        let target = target(&transaction, new, model, now_ms, &make)?;
        let Target { conversation, question, answer } = target;
        let assistant_message = answer.as_ref().map_or_else(make, |row| row.id.clone());
        let started = StartedTurn { turn: make(), conversation, user_message: question, assistant_message };
        match &answer {
            Some(row) => go_on(&transaction, row)?,
            None => message::insert(
                &transaction,
                &MessageRow {
                    conversation: started.conversation.clone(),
                    parent: Some(started.user_message.clone()),
                    role: Role::Assistant,
                    state: MessageState::Streaming,
                    model: Some(model.into()),
                    created_ms: now_ms,
                    ..MessageRow::new(started.assistant_message.clone())
                },
            )?,
        }
        turn::insert(
            &transaction,
            &TurnRow {
                id: started.turn.clone(),
                conversation: started.conversation.clone(),
                message: started.assistant_message.clone(),
                owner: self.owner.id.clone(),
            },
        )?;
        tree::move_leaf(&transaction, &started.conversation, Some(&started.assistant_message))?;
        conversation::touch(&transaction, &started.conversation, now_ms)?;
        transaction.commit()?;
        Ok(started)
    }

    /// More of the answer that is being written.
    pub fn append(&mut self, message: &str, chunk: &AnswerChunk) -> Result<()> {
        chunk::append(&self.db, message, chunk)
    }

    /// The pieces of an answer that is being written are this one from now on.
    pub fn replace_chunks(&mut self, message: &str, chunk: &AnswerChunk) -> Result<()> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        chunk::clear(&transaction, message)?;
        chunk::append(&transaction, message, chunk)?;
        transaction.commit()?;
        Ok(())
    }

    /// The end of an answer: its pieces are folded into it.
    pub fn finish(&mut self, id: &str, ending: &TurnEnding) -> Result<()> {
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
        // An end without ids (a failure) keeps those of its pieces.
        let log = ending.log.clone().or(chunk::assemble(&transaction, id)?.log());
        if let Some(log) = &log {
            token_log::put(&transaction, id, log)?;
        }
        chunk::clear(&transaction, id)?;
        turn::remove_of_message(&transaction, id)?;
        conversation::touch(&transaction, &ended.conversation, self.clock.now_utc_ms())?;
        transaction.commit()?;
        Ok(())
    }

    /// The ids that were generated for an answer, markup included: what going on with it begins with.
    pub fn token_logs(&self, message: &str) -> Result<Vec<TokenLog>> {
        token_log::of(&self.db, message)
    }
}

fn target(
    db: &Connection,
    new: NewTurn,
    model: &str,
    now_ms: i64,
    make: &dyn Fn() -> String,
) -> Result<Target> {
    let (conversation, question) = match new {
        NewTurn::Message { conversation: None, title, text, attachments } => {
            let row = ConversationRow {
                title: title.into(),
                model: model.into(),
                created_ms: now_ms,
                updated_ms: now_ms,
                ..ConversationRow::new(make())
            };
            conversation::insert(db, &row)?;
            let question = say(db, &row.id, None, make(), (text, attachments), now_ms)?;
            (row.id, question)
        }
        NewTurn::Message { conversation: Some(id), text, attachments, .. } => {
            let row = idle_conversation(db, id)?;
            let question = say(db, id, row.leaf, make(), (text, attachments), now_ms)?;
            (row.id, question)
        }
        NewTurn::Edit { message, text, attachments } => {
            let old = tree::live_message(db, message)?;
            if old.role != Role::User {
                return Err(SessionError::new(
                    "session.not_a_question",
                    "Only your own messages can be edited and sent again.",
                    "Regenerate the answer instead.",
                ));
            }
            idle_conversation(db, &old.conversation)?;
            let question = say(db, &old.conversation, old.parent, make(), (text, attachments), now_ms)?;
            (old.conversation, question)
        }
        NewTurn::Retry { conversation: id } => {
            let row = idle_conversation(db, id)?;
            let question = last_question(db, &row)?;
            (row.id, question)
        }
        NewTurn::Regenerate { message } => asked_again(db, message)?,
        NewTurn::Continue { message } => {
            let row = tree::live_message(db, message)?;
            idle_conversation(db, &row.conversation)?;
            let Some(question) = row.parent.clone().filter(|_| row.role == Role::Assistant) else {
                return Err(no_question());
            };
            return Ok(Target { conversation: row.conversation.clone(), question, answer: Some(row) });
        }
        NewTurn::ToolResults { message } => {
            let row = tree::live_message(db, message)?;
            idle_conversation(db, &row.conversation)?;
            let Some(_) = row.tool_calls.filter(|_| row.role == Role::Assistant) else {
                return Err(no_question());
            };
            (row.conversation, row.id)
        }
    };
    Ok(Target { conversation, question, answer: None })
}

/// Conversation and question of another version of an answer.
fn asked_again(db: &Connection, message: &str) -> Result<(String, String)> {
    let row = tree::live_message(db, message)?;
    idle_conversation(db, &row.conversation)?;
    let question = match (row.role, row.parent) {
        (Role::User, _) => row.id,
        (Role::Assistant, Some(parent)) => parent,
        (Role::Assistant | Role::System, _) => return Err(no_question()),
    };
    Ok((row.conversation, question))
}

/// An answer that goes on: what it has becomes its first piece, so that it is there however this ends.
fn go_on(db: &Connection, row: &MessageRow) -> Result<()> {
    if tree::has_children(db, &row.id)? {
        return Err(SessionError::new(
            "session.not_the_end",
            "This answer is followed by other messages, so it can't be continued.",
            "Regenerate it, or branch into a new chat here.",
        ));
    }
    chunk::clear(db, &row.id)?;
    let logs = token_log::of(db, &row.id)?;
    let log = logs.iter().find(|log| !log.all_ids.is_empty());
    chunk::append(
        db,
        &row.id,
        &AnswerChunk {
            text: &row.text,
            reasoning: &row.reasoning,
            ids: log.map_or(&[], |log| &log.all_ids),
            fingerprint: log.map_or("", |log| &log.fingerprint),
        },
    )?;
    message::reopen(db, &row.id)
}

/// The conversation, if nothing is being written in it.
pub(crate) fn idle_conversation(db: &Connection, id: &str) -> Result<ConversationRow> {
    let row = conversation::get(db, id)?;
    if row.deleted_ms.is_some() {
        return Err(SessionError::missing("conversation", id));
    }
    if turn::of_conversation(db, id)?.is_some() {
        return Err(SessionError::new(
            "session.answering",
            "This chat is still generating an answer.",
            "Wait until it is done, or stop it.",
        ));
    }
    Ok(row)
}

fn say(
    db: &Connection,
    conversation: &str,
    parent: Option<String>,
    id: String,
    (text, attachments): (&str, Option<&NewAttachments>),
    now_ms: i64,
) -> Result<String> {
    let message = MessageRow {
        conversation: conversation.into(),
        parent,
        text: text.into(),
        created_ms: now_ms,
        ..MessageRow::new(id)
    };
    message::insert(db, &message)?;
    match attachments {
        Some(attachments) => {
            attachments::insert_new(db, &message.id, attachments)?;
            search::put(db, &message.id, &attachments::indexed(text, &attachments.attachments))?;
        }
        None => search::put(db, &message.id, text)?,
    }
    Ok(message.id)
}

/// The user message that the active branch ends with or answers last.
fn last_question(db: &Connection, row: &ConversationRow) -> Result<String> {
    let branch = match &row.leaf {
        Some(leaf) => message::branch(db, leaf)?,
        None => Vec::new(),
    };
    let question = branch.iter().rev().find(|message| message.role == Role::User);
    question.map(|message| message.id.clone()).ok_or_else(no_question)
}

fn no_question() -> SessionError {
    SessionError::new(
        "session.nothing_to_retry",
        "There is no message to answer again.",
        "Write a message first.",
    )
}
