//! The session: conversations as trees of messages with one active branch each, and settings.
//!
//! Guarantees that an answer whose writer died is marked `Interrupted` with the text that was saved. Turns, branches,
//! folders and the trash are in separate files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use io::{Clock, Io};
use rusqlite::{Connection, TransactionBehavior};
use uuid::{NoContext, Timestamp, Uuid};

use crate::db::{self, LastExit, Notice};
use crate::error::{Result, SessionError};
use crate::owner::Owner;
use crate::readable_copy::bytes_with_wal;
use crate::table::attachment::{self, MessageAttachments};
use crate::table::conversation::{self, ConversationRow, TitledBy};
use crate::table::folder;
use crate::table::message::{self, MessageRow, MessageState};
use crate::table::search::{self, SearchHit};
use crate::table::token_log::{self, TokenLog};
use crate::table::{chunk, setting, turn};
use crate::{backup, read_only, step_limit};

/// The open database of conversations, settings and library entries. One writer per process.
pub struct Session {
    pub(crate) db: Connection,
    pub(crate) owner: Owner,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) folder: PathBuf,
    /// No other process used the data when this one opened it.
    pub(crate) is_alone: bool,
    /// Nothing can be saved: the disk is full, or the folder cannot be written.
    pub(crate) is_read_only: bool,
}

/// A conversation with its active branch.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// The conversation.
    pub conversation: ConversationRow,
    /// Messages, root first.
    pub messages: Vec<BranchMessage>,
}

/// A message of the active branch.
#[derive(Debug, Clone, PartialEq)]
pub struct BranchMessage {
    /// The message.
    pub row: MessageRow,
    /// Its version number under the parent, from 1.
    pub version: u32,
    /// Number of versions under the parent.
    pub versions: u32,
    /// Token ids that models generated for it.
    pub logs: Vec<TokenLog>,
    /// Its files, and the passages put into the prompt with it.
    pub attachments: MessageAttachments,
}

impl Session {
    /// Opens the data in `folder`, or makes it. Notices report damage that was repaired. Where nothing can be written but
    /// there is a database, or a newer version wrote it, it is opened for reading, and a notice says so.
    pub fn open(folder: &Path, io: &dyn Io, clock: Arc<dyn Clock>) -> Result<(Self, Vec<Notice>)> {
        match Self::open_to_write(folder, io, Arc::clone(&clock)) {
            Err(error) if read_only::is_no_writing(&error) || read_only::is_newer(&error) => {
                let path = folder.join(db::inspect::FILE_NAME);
                // The first error says why.
                let (db, notice) = read_only::open(&path, &error, io).map_err(|_| error)?;
                let owner = Owner::without_lock(&folder.join("running"), new_id(&*clock));
                let folder = folder.to_owned();
                Ok((Self { db, owner, clock, folder, is_alone: false, is_read_only: true }, vec![notice]))
            }
            opened => opened,
        }
    }

    fn open_to_write(folder: &Path, io: &dyn Io, clock: Arc<dyn Clock>) -> Result<(Self, Vec<Notice>)> {
        io.create_dir_all(folder)?;
        let owner = Owner::take(&folder.join("running"), new_id(&*clock), io)?;
        let others = owner.others(io)?;
        let last =
            if others.has_any_died && !others.is_any_alive { LastExit::Unclean } else { LastExit::Clean };
        if !others.is_any_alive {
            backup::remove_leftovers(folder, io)?;
        }
        let is_alone = !others.is_any_alive;
        let path = folder.join(db::inspect::FILE_NAME);
        let (db, mut notices) = db::open(&path, last, is_alone, io, &*clock)?;
        let folder = folder.to_owned();
        let mut session = Self { db, owner, clock, folder, is_alone, is_read_only: false };
        match session.tidy_up(io) {
            Ok(of_trash) => notices.extend(of_trash),
            // Damage that only shows where rows are used, such as an index that does not fit its table.
            Err(error) if error.is_about_rows() && is_alone => {
                step_limit::set(&mut session.db, bytes_with_wal(&path, io))?;
                let repaired = session.repair(io)?;
                notices.push(repaired.map_or_else(|| session.replace_database(io), Ok)?);
                notices.extend(session.tidy_up(io)?);
            }
            Err(error) => return Err(error),
        }
        step_limit::remove(&mut session.db)?;
        Ok((session, notices))
    }

    /// What every start does: ends answers whose writer died, completes the search index, and empties the trash.
    fn tidy_up(&mut self, io: &dyn Io) -> Result<Vec<Notice>> {
        self.interrupt_orphaned_answers()?;
        search::complete(&mut self.db)?;
        Ok(self.empty_trash(io)?.into_iter().collect())
    }

    /// Whether nothing can be saved: the disk was full, or the folder could not be written, when it was opened.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// For tests: stops the database from growing, as on a full disk, or allows it again.
    #[doc(hidden)]
    pub fn set_disk_full(&self, is_full: bool) -> Result<()> {
        let n_pages: i64 = self.db.pragma_query_value(None, "page_count", |row| row.get(0))?;
        let max_pages = if is_full { n_pages } else { i64::from(u32::MAX - 1) };
        let _: i64 =
            self.db.query_row(&format!("PRAGMA max_page_count = {max_pages}"), [], |row| row.get(0))?;
        Ok(())
    }

    /// Marks answers whose writer died as `Interrupted` and returns their conversations.
    pub fn interrupt_orphaned_answers(&mut self) -> Result<Vec<String>> {
        let mut interrupted = Vec::new();
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for row in turn::all(&transaction)? {
            if !self.owner.is_alive(&row.owner)? {
                turn::remove_of_message(&transaction, &row.message)?;
                interrupted.push(row.conversation);
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
        Ok(interrupted)
    }

    // ---- conversations ----

    /// Lists conversations outside the trash, most recently used first.
    pub fn conversations(&self) -> Result<Vec<ConversationRow>> {
        conversation::list(&self.db)
    }

    /// Reads a conversation. Errors if it is in the trash.
    pub fn conversation(&self, id: &str) -> Result<ConversationRow> {
        let row = conversation::get(&self.db, id)?;
        if row.deleted_ms.is_some() {
            return Err(SessionError::missing("conversation", id));
        }
        Ok(row)
    }

    /// The turn of this process that is answering in the conversation.
    pub fn active_turn(&self, conversation: &str) -> Result<Option<String>> {
        let row = turn::of_conversation(&self.db, conversation)?;
        Ok(row.filter(|row| row.owner == self.owner.id).map(|row| row.id))
    }

    /// Conversation and turn of every answer that this process is writing.
    pub fn active_turns(&self) -> Result<Vec<(String, String)>> {
        let rows = turn::all(&self.db)?.into_iter().filter(|row| row.owner == self.owner.id);
        Ok(rows.map(|row| (row.conversation, row.id)).collect())
    }

    /// The active branch with versions, token logs and attachments. An answer in progress has its text so far.
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

    /// Sets the title chosen by the user. It is never replaced automatically.
    pub fn rename(&mut self, id: &str, title: &str) -> Result<ConversationRow> {
        self.conversation(id)?;
        conversation::set_title(&self.db, id, title, TitledBy::User)?;
        self.conversation(id)
    }

    /// Sets a title generated by a model. None if the user has set one meanwhile.
    pub fn set_generated_title(&mut self, id: &str, title: &str) -> Result<Option<ConversationRow>> {
        if self.conversation(id)?.titled_by == TitledBy::User {
            return Ok(None);
        }
        conversation::set_title(&self.db, id, title, TitledBy::Model)?;
        self.conversation(id).map(Some)
    }

    /// Sets the model that answers.
    pub fn set_model(&mut self, id: &str, model: &str) -> Result<ConversationRow> {
        self.conversation(id)?;
        conversation::set_model(&self.db, id, model)?;
        self.conversation(id)
    }

    /// Pins or unpins a conversation.
    pub fn set_pinned(&mut self, id: &str, pinned: bool) -> Result<ConversationRow> {
        self.conversation(id)?;
        conversation::set_pinned(&self.db, id, pinned)?;
        self.conversation(id)
    }

    /// Sets per-chat options: JSON of the layer above. None uses the settings.
    pub fn set_options(&mut self, id: &str, options: Option<&str>) -> Result<ConversationRow> {
        self.conversation(id)?;
        conversation::set_options(&self.db, id, options)?;
        self.conversation(id)
    }

    /// Messages that contain all words of the query, newest first.
    pub fn search(&self, query: &str, limit: u32) -> Result<Vec<SearchHit>> {
        search::find(&self.db, query, limit)
    }

    /// Moves a conversation into a folder, or out of all folders.
    pub fn move_to(&mut self, id: &str, folder: Option<&str>) -> Result<ConversationRow> {
        self.conversation(id)?;
        if let Some(folder) = folder {
            folder::get(&self.db, folder)?;
        }
        conversation::set_folder(&self.db, id, folder)?;
        self.conversation(id)
    }

    // ---- settings ----

    /// Value of a setting as JSON; None if it has its default.
    pub fn setting(&self, key: &str) -> Result<Option<String>> {
        setting::get(&self.db, key)
    }

    /// Stores a setting as JSON.
    pub fn set_setting(&mut self, key: &str, json: &str) -> Result<()> {
        setting::put(&self.db, key, json)
    }

    /// Resets a setting to its default.
    pub fn reset_setting(&mut self, key: &str) -> Result<()> {
        setting::remove(&self.db, key)
    }

    /// Sets a value that can't be read aside, under the key with `.bad` behind it.
    pub fn set_setting_aside(&mut self, key: &str) -> Result<String> {
        let aside = format!("{key}.bad");
        setting::rename(&self.db, key, &aside)?;
        Ok(aside)
    }

    /// A new UUIDv7.
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

/// A UUIDv7, which sorts by creation time.
pub(crate) fn new_id(clock: &dyn Clock) -> String {
    let ms = u64::try_from(clock.now_utc_ms()).unwrap_or(0);
    let nanos = (ms % 1000) as u32 * 1_000_000;
    Uuid::new_v7(Timestamp::from_unix(NoContext, ms / 1000, nanos)).to_string()
}

/// The conversation, if no answer is being written in it. Errors if it is in the trash.
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
