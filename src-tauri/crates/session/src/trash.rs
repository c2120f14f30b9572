//! Deletion: into the trash, out of it, and permanently.
//!
//! After a permanent deletion the text is in no file of the data folder. Rows and index are overwritten, the file is
//! rebuilt without free pages, and the WAL is truncated. Copies that contain the text (backups, damaged files) are removed.
//! If that fails (a full disk, another reader), it is reported and repeated at the next start.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use io::Io;
use rusqlite::TransactionBehavior;

use crate::conversation::{Session, idle_conversation};
use crate::error::{Result, SessionError};
use crate::table::conversation::{self, ConversationRow, TitledBy};
use crate::table::{attachment, chunk, compaction, document, message, search, setting, token_log, turn};
use crate::{backup, schema};

/// How long deleted items can be restored.
pub(crate) const TRASH_RETENTION_MS: i64 = 30 * 24 * 3600 * 1000;

/// Messages from which a title is made: the first question and its answer.
const TITLE_MESSAGES: usize = 2;

/// Length of an id: a UUID as text.
const ID_BYTES: usize = 36;

/// Internal setting: ids of deleted items whose copies still have to be removed.
const TRACES_KEY: &str = "internal.traces";

impl Session {
    /// Moves a conversation to the trash.
    pub fn delete(&mut self, id: &str) -> Result<()> {
        self.conversation(id)?;
        conversation::set_deleted(&self.db, id, Some(self.clock.now_utc_ms()))
    }

    /// Moves a conversation out of the trash. No error if it is not in it.
    pub fn restore(&mut self, id: &str) -> Result<ConversationRow> {
        conversation::get(&self.db, id)?;
        conversation::set_deleted(&self.db, id, None)?;
        self.conversation(id)
    }

    /// Lists conversations in the trash, most recently deleted first.
    pub fn trash(&self) -> Result<Vec<ConversationRow>> {
        conversation::trash(&self.db)
    }

    /// Deletes conversations permanently, in the trash or not. Returns a notice if traces could not be wiped yet.
    pub fn purge(&mut self, ids: &[String], io: &dyn Io) -> Result<Option<SessionError>> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for id in ids {
            conversation::get(&transaction, id)?;
            if turn::of_conversation(&transaction, id)?.is_some() {
                return Err(SessionError::new(
                    "session.answering",
                    "This chat is still generating an answer.",
                    "Wait until it is done, or stop it.",
                ));
            }
            search::remove_conversation(&transaction, id)?;
            conversation::remove(&transaction, id)?;
        }
        document::sweep(&transaction)?;
        let traces = with_traces(setting::internal(&transaction, TRACES_KEY)?, ids);
        setting::put(&transaction, TRACES_KEY, &traces)?;
        transaction.commit()?;
        self.wipe_pending_traces(io)
    }

    /// Deletes a message permanently. If it has children, a placeholder stays in its position. Summaries that contain it
    /// are deleted too, and a title that was made from it becomes `title`. Returns the conversation, and a notice if traces
    /// could not be wiped yet.
    pub fn purge_message(
        &mut self,
        id: &str,
        title: &str,
        io: &dyn Io,
    ) -> Result<(ConversationRow, Option<SessionError>)> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let row = message::get(&transaction, id)?;
        let conversation = idle_conversation(&transaction, &row.conversation)?;
        let is_opening = message::branch(&transaction, id)?.len() <= TITLE_MESSAGES;
        compaction::remove_from(&transaction, id)?;
        search::remove(&transaction, id)?;
        if message::is_leaf(&transaction, id)? {
            if conversation.leaf.as_deref() == Some(id) {
                conversation::set_leaf(&transaction, &conversation.id, row.parent.as_deref())?;
            }
            message::remove(&transaction, id)?;
        } else {
            token_log::remove(&transaction, id)?;
            chunk::clear(&transaction, id)?;
            attachment::remove(&transaction, id)?;
            message::blank(&transaction, id)?;
        }
        document::sweep(&transaction)?;
        if is_opening && conversation.titled_by != TitledBy::User {
            conversation::set_title(&transaction, &conversation.id, title, TitledBy::Start)?;
        }
        let traces = with_traces(setting::internal(&transaction, TRACES_KEY)?, &[id.to_owned()]);
        setting::put(&transaction, TRACES_KEY, &traces)?;
        conversation::bump_revision(&transaction, &conversation.id)?;
        transaction.commit()?;
        let notice = self.wipe_pending_traces(io)?;
        Ok((self.conversation(&conversation.id)?, notice))
    }

    /// Permanently deletes messages and conversations whose retention in the trash has passed.
    pub(crate) fn empty_trash(&mut self, io: &dyn Io) -> Result<Option<SessionError>> {
        let before_ms = self.clock.now_utc_ms() - TRASH_RETENTION_MS;
        let messages = message::deleted_before(&self.db, before_ms)?;
        let ids = conversation::deleted_before(&self.db, before_ms)?;
        if !messages.is_empty() {
            let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Deleting a row cascades to its children, so the index entries go first.
            for id in &messages {
                search::remove(&transaction, id)?;
            }
            for id in &messages {
                message::remove(&transaction, id)?;
            }
            document::sweep(&transaction)?;
            let traces = with_traces(setting::internal(&transaction, TRACES_KEY)?, &messages);
            setting::put(&transaction, TRACES_KEY, &traces)?;
            transaction.commit()?;
        }
        if !ids.is_empty() {
            return self.purge(&ids, io);
        }
        self.wipe_pending_traces(io)
    }

    /// Wipes pending traces of deleted text, if there are any.
    pub(crate) fn wipe_pending_traces(&mut self, io: &dyn Io) -> Result<Option<SessionError>> {
        let Some(traces) = setting::internal(&self.db, TRACES_KEY)? else { return Ok(None) };
        let ids = traces.split(' ').map(str::as_bytes).collect();
        let outcome = self.wipe_traces(&ids, io);
        if let Err(error) = outcome {
            return Ok(Some(SessionError::new(
                "session.traces",
                format!("It was deleted, but traces of its text may still be on the disk: {error}"),
                "Close other windows and free up disk space. Inglenook tries again at the next start.",
            )));
        }
        setting::remove(&self.db, TRACES_KEY)?;
        self.truncate_wal()?;
        Ok(None)
    }

    fn wipe_traces(&self, ids: &HashSet<&[u8]>, io: &dyn Io) -> Result<()> {
        for copy in copies(&self.folder, io)? {
            let bytes = io.read(&copy)?;
            if contains_any(&bytes, ids) {
                io.remove_file(&copy)?;
            }
        }
        // Overwritten rows may have left copies in pages they were moved from; a rebuilt file has none.
        self.db.execute_batch("VACUUM")?;
        schema::record(&self.db)?;
        self.truncate_wal()
    }

    /// Moves the WAL into the database file and truncates it.
    pub(crate) fn truncate_wal(&self) -> Result<()> {
        let busy: i64 = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if busy == 0 {
            return Ok(());
        }
        Err(SessionError::new(
            "session.busy",
            "Another program is reading the chat database.",
            "Close other Inglenook windows or backup programs and try again.",
        ))
    }
}

fn with_traces(before: Option<String>, ids: &[String]) -> String {
    let mut traces = before.unwrap_or_default();
    for id in ids {
        if !traces.is_empty() {
            traces.push(' ');
        }
        traces.push_str(id);
    }
    traces
}

/// Other files that contain rows of the database: backups, and damaged files that were set aside.
fn copies(folder: &Path, io: &dyn Io) -> Result<Vec<PathBuf>> {
    let mut copies = Vec::new();
    for path in io.list(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("inglenook.db.") {
            copies.push(path);
        }
    }
    let backups = backup::folder(folder);
    if io.exists(&backups)? {
        copies.extend(io.list(&backups)?);
    }
    Ok(copies)
}

/// Whether `bytes` contains any of the ids. One pass, since files may be large and ids many.
fn contains_any(bytes: &[u8], ids: &HashSet<&[u8]>) -> bool {
    bytes.windows(ID_BYTES).any(|at| at[8] == b'-' && at[13] == b'-' && ids.contains(at))
}
