//! The conversations: trees of messages, of which one branch is active.
//!
//! Guarantees that an answer whose writer died is found as `Interrupted` with what was saved. Turns, the tree's
//! branches, folders and the trash have files of their own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use io::{Clock, Io};
use rusqlite::{Connection, TransactionBehavior};
use uuid::{NoContext, Timestamp, Uuid};

use crate::backup;
use crate::db::{self, LastExit, Notice};
use crate::error::{Result, SessionError};
use crate::owner::Owner;
use crate::table::attachment::{self, MessageAttachments};
use crate::table::conversation::{self, ConversationRow, TitledBy};
use crate::table::folder;
use crate::table::message::{self, MessageRow, MessageState};
use crate::table::search::{self, SearchHit};
use crate::table::token_log::{self, TokenLog};
use crate::table::{chunk, setting, turn};

/// The kept conversations, settings and library entries: one writer.
pub struct Session {
    pub(crate) db: Connection,
    pub(crate) owner: Owner,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) folder: PathBuf,
    /// No other process used the data when this one began.
    pub(crate) is_alone: bool,
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
    /// Files of it, and what of files was given to the model with it.
    pub attachments: MessageAttachments,
}

impl Session {
    /// Opens what lies in `folder`, or begins it. Notices tell of damage that was mended.
    pub fn open(folder: &Path, io: &dyn Io, clock: Arc<dyn Clock>) -> Result<(Self, Vec<Notice>)> {
        io.create_dir_all(folder)?;
        let owner = Owner::take(&folder.join("running"), new_id(&*clock), io)?;
        let others = owner.others(io)?;
        let last = if others.died && !others.alive { LastExit::Unclean } else { LastExit::Clean };
        if !others.alive {
            backup::remove_leftovers(folder, io)?;
        }
        let (db, mut notices) = db::open(&folder.join(db::FILE), last, io, &*clock)?;
        let mut session = Self { db, owner, clock, folder: folder.to_owned(), is_alone: !others.alive };
        session.recover()?;
        search::complete(&session.db)?;
        notices.extend(session.empty_trash(io)?);
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
            let answer = chunk::assemble(&transaction, &id)?;
            let row = message::get(&transaction, &id)?;
            let (text, reasoning) = (answer.text.clone(), answer.reasoning.clone());
            message::finish(
                &transaction,
                &MessageRow { text, reasoning, state: MessageState::Interrupted, ..row },
            )?;
            if let Some(log) = answer.log() {
                token_log::put(&transaction, &id, &log)?;
            }
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
        let mut attachments = attachment::of_conversation(&self.db, id)?;
        let mut messages = Vec::with_capacity(rows.len());
        for mut row in rows {
            if row.state == MessageState::Streaming {
                let answer = chunk::assemble(&self.db, &row.id)?;
                (row.text, row.reasoning) = (answer.text, answer.reasoning);
            }
            let (version, versions) = message::version(&self.db, &row)?;
            let logs = token_log::of(&self.db, &row.id)?;
            let attachments = attachments.remove(&row.id).unwrap_or_default();
            messages.push(BranchMessage { row, version, versions, logs, attachments });
        }
        Ok(Branch { conversation, messages })
    }

    /// By the user, whose title stays.
    pub fn rename(&mut self, id: &str, title: &str) -> Result<ConversationRow> {
        self.conversation(id)?;
        conversation::set_title(&self.db, id, title, TitledBy::User)?;
        self.conversation(id)
    }

    /// By a model; None: the title has become the user's meanwhile.
    pub fn set_generated_title(&mut self, id: &str, title: &str) -> Result<Option<ConversationRow>> {
        if self.conversation(id)?.titled_by == TitledBy::User {
            return Ok(None);
        }
        conversation::set_title(&self.db, id, title, TitledBy::Model)?;
        self.conversation(id).map(Some)
    }

    pub fn set_model(&mut self, id: &str, model: &str) -> Result<ConversationRow> {
        self.conversation(id)?;
        conversation::set_model(&self.db, id, model)?;
        self.conversation(id)
    }

    pub fn set_pinned(&mut self, id: &str, pinned: bool) -> Result<ConversationRow> {
        self.conversation(id)?;
        conversation::set_pinned(&self.db, id, pinned)?;
        self.conversation(id)
    }

    /// JSON of the layer above; None: as the settings say.
    pub fn set_options(&mut self, id: &str, options: Option<&str>) -> Result<ConversationRow> {
        self.conversation(id)?;
        conversation::set_options(&self.db, id, options)?;
        self.conversation(id)
    }

    /// Messages that have all of a question's words, newest first.
    pub fn search(&self, query: &str, limit: u32) -> Result<Vec<SearchHit>> {
        search::find(&self.db, query, limit)
    }

    /// Into a folder, or out of any.
    pub fn move_to(&mut self, id: &str, folder: Option<&str>) -> Result<ConversationRow> {
        self.conversation(id)?;
        if let Some(folder) = folder {
            folder::get(&self.db, folder)?;
        }
        conversation::set_folder(&self.db, id, folder)?;
        self.conversation(id)
    }

    // ---- settings ----

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

    pub fn new_id(&self) -> String {
        new_id(&*self.clock)
    }

    pub(crate) fn db(&self) -> &Connection {
        &self.db
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now_utc_ms()
    }
}

/// UUIDv7: sorts by the time of its making.
pub(crate) fn new_id(clock: &dyn Clock) -> String {
    let ms = u64::try_from(clock.now_utc_ms()).unwrap_or(0);
    let nanos = (ms % 1000) as u32 * 1_000_000;
    Uuid::new_v7(Timestamp::from_unix(NoContext, ms / 1000, nanos)).to_string()
}
