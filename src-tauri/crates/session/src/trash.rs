//! Deleting: into the trash, out of it, and for good.
//!
//! For good means that the text is in no file below the data folder any more: rows and index are overwritten, the
//! file is written anew without its free pages, the log of the last writes is emptied, and copies of the database
//! that have the text (backups, damaged files that were set aside) go. Where something stands in the way of that
//! (a full disk, another program that reads), it is done at the next chance and said.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use io::Io;
use rusqlite::TransactionBehavior;

use crate::backup;
use crate::conversation::Session;
use crate::error::{Result, SessionError};
use crate::table::conversation::{self, ConversationRow, TitledBy};
use crate::table::{attachment, chunk, compaction, document, message, search, setting, token_log, turn};
use crate::turns::idle_conversation;

/// How long what was deleted can be had back.
pub(crate) const TRASH_MS: i64 = 30 * 24 * 3600 * 1000;

/// A title is made of so many messages: the first question and its answer.
const MADE_OF: usize = 2;

/// Of an id: a UUID as text.
const ID_BYTES: usize = 36;

/// There are traces of deleted text that could not be wiped yet. The value: ids whose copies have to go.
const TRACES: &str = "internal.traces";

impl Session {
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

    /// What lies in the trash, the last first.
    pub fn trash(&self) -> Result<Vec<ConversationRow>> {
        conversation::trash(&self.db)
    }

    /// Conversations for good, in the trash or not. A notice: traces could not be wiped yet.
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
        let traces = with_traces(setting::get(&transaction, TRACES)?, ids);
        setting::put(&transaction, TRACES, &traces)?;
        transaction.commit()?;
        self.wipe(io)
    }

    /// A message for good. Where nothing hangs on it its place goes too; else that stays, so that what was said after it
    /// is where it was, and says that it is deleted. Summaries that know it go with it, and a title that was made of it
    /// becomes `title`. The conversation. A notice: traces could not be wiped yet.
    pub fn purge_message(
        &mut self,
        id: &str,
        title: &str,
        io: &dyn Io,
    ) -> Result<(ConversationRow, Option<SessionError>)> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let row = message::get(&transaction, id)?;
        let conversation = idle_conversation(&transaction, &row.conversation)?;
        let is_opening = message::branch(&transaction, id)?.len() <= MADE_OF;
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
        let traces = with_traces(setting::get(&transaction, TRACES)?, &[id.to_owned()]);
        setting::put(&transaction, TRACES, &traces)?;
        conversation::changed(&transaction, &conversation.id)?;
        transaction.commit()?;
        let notice = self.wipe(io)?;
        Ok((self.conversation(&conversation.id)?, notice))
    }

    /// Removed branches and conversations whose time in the trash is over go for good.
    pub(crate) fn empty_trash(&mut self, io: &dyn Io) -> Result<Option<SessionError>> {
        let before_ms = self.clock.now_utc_ms() - TRASH_MS;
        let messages = message::deleted_before(&self.db, before_ms)?;
        let ids = conversation::deleted_before(&self.db, before_ms)?;
        if !messages.is_empty() {
            let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Rows go with those that they hang on: the index first.
            for id in &messages {
                search::remove(&transaction, id)?;
            }
            for id in &messages {
                message::remove(&transaction, id)?;
            }
            document::sweep(&transaction)?;
            let traces = with_traces(setting::get(&transaction, TRACES)?, &messages);
            setting::put(&transaction, TRACES, &traces)?;
            transaction.commit()?;
        }
        if !ids.is_empty() {
            return self.purge(&ids, io);
        }
        self.wipe(io)
    }

    /// Wipes what deleted text has left behind, if there is any.
    pub(crate) fn wipe(&mut self, io: &dyn Io) -> Result<Option<SessionError>> {
        let Some(traces) = setting::get(&self.db, TRACES)? else { return Ok(None) };
        let ids = traces.split(' ').map(str::as_bytes).collect();
        let outcome = self.wipe_traces(&ids, io);
        if let Err(error) = outcome {
            return Ok(Some(SessionError::new(
                "session.traces",
                format!("It was deleted, but traces of its text may still be on the disk: {error}"),
                "Close other windows and free up disk space. Inglenook tries again at the next start.",
            )));
        }
        setting::remove(&self.db, TRACES)?;
        self.checkpoint()?;
        Ok(None)
    }

    fn wipe_traces(&self, ids: &HashSet<&[u8]>, io: &dyn Io) -> Result<()> {
        for copy in copies(&self.folder, io)? {
            let bytes = io.read(&copy)?;
            if contains_any(&bytes, ids) {
                io.remove_file(&copy)?;
            }
        }
        // Overwriting leaves what was moved between pages earlier; a file that is written anew has nothing of it.
        self.db.execute_batch("VACUUM")?;
        self.checkpoint()
    }

    /// Everything into the database's own file, and the log emptied.
    pub(crate) fn checkpoint(&self) -> Result<()> {
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

/// Every other file that has rows of the database: backups, and damaged ones that were set aside.
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

/// Whether any of these ids stands in `bytes`: one pass, since a file may be large and the ids many.
fn contains_any(bytes: &[u8], ids: &HashSet<&[u8]>) -> bool {
    bytes.windows(ID_BYTES).any(|at| at[8] == b'-' && at[13] == b'-' && ids.contains(at))
}
