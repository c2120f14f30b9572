//! Turns: a question and the answer that is being written to it, from the first row to the last.
//!
//! Guarantees that the question is on disk before `start` returns, that a continued answer loses nothing of its text, and
//! that a conversation has one writer.

use rusqlite::{Connection, TransactionBehavior};

use crate::attachments::{self, NewAttachments};
use crate::conversation::{Session, idle_conversation, new_id};
use crate::error::{Result, SessionError};
use crate::table::chunk::{self, AnswerChunk};
use crate::table::conversation::{self, ConversationRow};
use crate::table::message::{self, MessageRow, MessageState};
use crate::table::role::Role;
use crate::table::search;
use crate::table::token_log::{self, TokenLog};
use crate::table::turn::{self, TurnRow};
use crate::tree;

/// What a new turn answers.
#[allow(missing_docs)] // fields say what they are
#[derive(Debug, Clone, Copy)]
pub enum NewTurn<'a> {
    /// A new message at the end of the active branch, or in a new conversation.
    Message {
        conversation: Option<&'a str>,
        title: &'a str,
        text: &'a str,
        attachments: Option<&'a NewAttachments>,
    },
    /// A new version of a user message, which begins a branch.
    Edit { message: &'a str, text: &'a str, attachments: Option<&'a NewAttachments> },
    /// A new version of the answer to the last user message of the active branch.
    Retry { conversation: &'a str },
    /// A new version of an answer, or of the answer to a question.
    Regenerate { message: &'a str },
    /// Continues an answer where it ended.
    Continue { message: &'a str },
    /// Answers the results of the tools that an answer called; the new answer is its child.
    ToolResults { message: &'a str },
}

/// Ids of a turn that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedTurn {
    /// The turn.
    pub turn: String,
    /// Its conversation.
    pub conversation: String,
    /// The question.
    pub user_message: String,
    /// The answer that is being written.
    pub assistant_message: String,
}

/// Final content and state of an answer.
#[derive(Debug, Clone)]
pub struct TurnEnding<'a> {
    /// How it ended.
    pub state: MessageState,
    /// Whole text.
    pub text: &'a str,
    /// Whole reasoning.
    pub reasoning: &'a str,
    /// Tool calls: JSON of the layer above.
    pub tool_calls: Option<String>,
    /// Figures of the turn: JSON of the layer above.
    pub stats: Option<String>,
    /// Why it failed: JSON of the layer above.
    pub error: Option<String>,
    /// Generated token ids; None keeps those of the chunks.
    pub log: Option<TokenLog>,
}

/// Where an answer goes: into a new message, or appended to an existing one.
struct TurnTarget {
    conversation: String,
    question: String,
    /// The message that is continued.
    answer: Option<MessageRow>,
}

impl Session {
    /// Saves the question and an empty answer in state `Streaming`. Errors while another answer is being written.
    pub fn start(&mut self, new: NewTurn, model: &str) -> Result<StartedTurn> {
        self.interrupt_orphaned_answers()?;
        let now_ms = self.clock.now_utc_ms();
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let make = || new_id(&*self.clock);
        let target = resolve_target(&transaction, new, model, now_ms, &make)?;
        let TurnTarget { conversation, question, answer } = target;
        let assistant_message = answer.as_ref().map_or_else(make, |row| row.id.clone());
        let started = StartedTurn { turn: make(), conversation, user_message: question, assistant_message };
        match &answer {
            Some(row) => reopen_answer(&transaction, row)?,
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
        tree::set_active_leaf(&transaction, &started.conversation, Some(&started.assistant_message))?;
        conversation::touch(&transaction, &started.conversation, now_ms)?;
        transaction.commit()?;
        Ok(started)
    }

    /// Appends a chunk to the answer that is being written.
    pub fn append(&mut self, message: &str, chunk: &AnswerChunk) -> Result<()> {
        chunk::append(&self.db, message, chunk)
    }

    /// Replaces all chunks of the answer that is being written by this one.
    pub fn replace_chunks(&mut self, message: &str, chunk: &AnswerChunk) -> Result<()> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        chunk::clear(&transaction, message)?;
        chunk::append(&transaction, message, chunk)?;
        transaction.commit()?;
        Ok(())
    }

    /// Ends an answer: stores its final content and removes its chunks.
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
        // An ending without ids (a failure) keeps those of the chunks.
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

    /// Token logs of an answer: the ids from which it can be continued.
    pub fn token_logs(&self, message: &str) -> Result<Vec<TokenLog>> {
        token_log::of(&self.db, message)
    }
}

fn resolve_target(
    db: &Connection,
    new: NewTurn,
    model: &str,
    now_ms: i64,
    make: &dyn Fn() -> String,
) -> Result<TurnTarget> {
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
            let question = insert_user_message(db, &row.id, None, make(), (text, attachments), now_ms)?;
            (row.id, question)
        }
        NewTurn::Message { conversation: Some(id), text, attachments, .. } => {
            let row = idle_conversation(db, id)?;
            let question = insert_user_message(db, id, row.leaf, make(), (text, attachments), now_ms)?;
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
            let question =
                insert_user_message(db, &old.conversation, old.parent, make(), (text, attachments), now_ms)?;
            (old.conversation, question)
        }
        NewTurn::Retry { conversation: id } => {
            let row = idle_conversation(db, id)?;
            let question = last_question(db, &row)?;
            (row.id, question)
        }
        NewTurn::Regenerate { message } => question_to_regenerate(db, message)?,
        NewTurn::Continue { message } => {
            let row = tree::live_message(db, message)?;
            idle_conversation(db, &row.conversation)?;
            let Some(question) = row.parent.clone().filter(|_| row.role == Role::Assistant) else {
                return Err(no_question());
            };
            return Ok(TurnTarget { conversation: row.conversation.clone(), question, answer: Some(row) });
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
    Ok(TurnTarget { conversation, question, answer: None })
}

/// Conversation and question to which an answer is regenerated.
fn question_to_regenerate(db: &Connection, message: &str) -> Result<(String, String)> {
    let row = tree::live_message(db, message)?;
    idle_conversation(db, &row.conversation)?;
    let question = match (row.role, row.parent) {
        (Role::User, _) => row.id,
        (Role::Assistant, Some(parent)) => parent,
        (Role::Assistant | Role::System, _) => return Err(no_question()),
    };
    Ok((row.conversation, question))
}

/// Reopens an answer to continue it. Its text becomes the first chunk, so that it survives any ending.
fn reopen_answer(db: &Connection, row: &MessageRow) -> Result<()> {
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

fn insert_user_message(
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
            search::put(db, &message.id, &attachments::searchable_text(text, &attachments.attachments))?;
        }
        None => search::put(db, &message.id, text)?,
    }
    Ok(message.id)
}

/// The last user message of the active branch.
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
