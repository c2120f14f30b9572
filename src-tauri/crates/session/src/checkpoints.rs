//! Files of stored contexts: written whole or not at all, found by name, evicted within a budget, swept at the start.
//!
//! A file is named by what it holds, so that whoever looks for the same finds it. Guarantees that a name leads nowhere
//! but into the folder. Knows nothing of what the bytes mean: `engine` judges them.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use io::{Io, IoError};
use rusqlite::TransactionBehavior;

use crate::conversation::Session;
use crate::error::{Result, SessionError};
use crate::table::checkpoint::{self, CheckpointRow, KvFile, KvTotals};
use crate::table::{conversation, message};

/// What files of contexts are called, after their name.
const EXTENSION: &str = ".kv";

/// Longest name: two hashes and a hyphen leave room.
const MAX_NAME_BYTES: usize = 96;

/// The folder of stored contexts.
#[derive(Clone)]
pub struct CheckpointFolder {
    folder: PathBuf,
    io: Arc<dyn Io>,
}

impl CheckpointFolder {
    /// It is made when the first file is written.
    pub fn new(folder: &Path, io: Arc<dyn Io>) -> Self {
        Self { folder: folder.to_owned(), io }
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Names of what lies there. Where there is no folder there is nothing.
    pub fn names(&self) -> Result<BTreeSet<String>> {
        Ok(self.entries()?.iter().filter_map(|path| name_of(path)).collect())
    }

    fn entries(&self) -> Result<Vec<PathBuf>> {
        match self.io.exists(&self.folder)? {
            true => Ok(self.io.list(&self.folder)?),
            false => Ok(Vec::new()),
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.file(name).is_ok_and(|path| self.io.exists(&path).unwrap_or(false))
    }

    pub fn read(&self, name: &str) -> Result<Vec<u8>> {
        Ok(self.io.read(&self.file(name)?)?)
    }

    /// The first `n` bytes, or all where there are fewer.
    pub fn read_start(&self, name: &str, n: usize) -> Result<Vec<u8>> {
        Ok(self.io.read_start(&self.file(name)?, n)?)
    }

    /// Replaces the file: on disk, whole, when this returns; after an error nothing is left of it.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.file(name)?;
        self.io.create_dir_all(&self.folder)?;
        self.io.write_atomic(&path, bytes)?;
        let n_written = self.io.len(&path)?;
        if n_written != bytes.len() as u64 {
            self.remove(name)?;
            let cause = format!("{n_written} of {} bytes arrived", bytes.len());
            return Err(IoError::new("write", &path, std::io::Error::other(cause)).into());
        }
        Ok(())
    }

    /// One that isn't there is no error.
    pub fn remove(&self, name: &str) -> Result<()> {
        let path = self.file(name)?;
        match self.io.exists(&path)? {
            true => Ok(self.io.remove_file(&path)?),
            false => Ok(()),
        }
    }

    /// Removes what an interrupted write left, and files of other names than `known`; how many.
    fn sweep(&self, known: &HashSet<String>) -> Result<usize> {
        let mut n_removed = 0;
        for path in self.entries()? {
            if name_of(&path).is_none_or(|name| !known.contains(&name)) {
                self.io.remove_file(&path)?;
                n_removed += 1;
            }
        }
        Ok(n_removed)
    }

    fn file(&self, name: &str) -> Result<PathBuf> {
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        match is_name && !name.is_empty() && name.len() <= MAX_NAME_BYTES {
            true => Ok(self.folder.join(format!("{name}{EXTENSION}"))),
            false => Err(SessionError::new(
                "checkpoint.name",
                format!("\"{name}\" is no name of a stored context."),
                "It is skipped. The chat is processed again from its text.",
            )),
        }
    }
}

fn name_of(path: &Path) -> Option<String> {
    path.file_name()?.to_str()?.strip_suffix(EXTENSION).filter(|name| !name.starts_with('.')).map(Into::into)
}

impl Session {
    /// At the start, when no other process uses the data: files without a row go, and rows without a file; how many
    /// files. Where there are others nothing is touched.
    pub fn sweep_contexts(&mut self, folder: &CheckpointFolder) -> Result<usize> {
        if !self.is_alone {
            return Ok(0);
        }
        let there = folder.names()?;
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        checkpoint::unclaim_orphans(&transaction)?;
        for name in checkpoint::unclaimed(&transaction)? {
            checkpoint::remove(&transaction, &name)?;
        }
        let mut known = HashSet::new();
        for name in checkpoint::all(&transaction)? {
            match there.contains(&name) {
                true => _ = known.insert(name),
                false => checkpoint::remove(&transaction, &name)?,
            }
        }
        transaction.commit()?;
        folder.sweep(&known)
    }

    /// Files that were written or read for a conversation, or a checkpoint: used just now, and needed by it.
    pub fn contexts_used(&mut self, owner: &str, written: &[KvFile], read: &[String]) -> Result<()> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let stamp = checkpoint::next_stamp(&transaction)?;
        for file in written {
            checkpoint::put(&transaction, file, stamp)?;
            checkpoint::claim(&transaction, owner, &file.name)?;
        }
        for name in read {
            checkpoint::touch(&transaction, name, stamp)?;
            checkpoint::claim(&transaction, owner, name)?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// Files that are gone.
    pub fn contexts_gone(&mut self, names: &[String]) -> Result<()> {
        names.iter().try_for_each(|name| checkpoint::remove(&self.db, name))
    }

    /// Removes what was used longest ago until `most_bytes` are left, files and rows; how many files. What named
    /// checkpoints need stays.
    pub fn evict_contexts(&mut self, folder: &CheckpointFolder, most_bytes: u64) -> Result<usize> {
        // what was written for a conversation that has gone meanwhile
        let mut n_removed = self.remove_unclaimed(folder)?;
        let mut n_bytes = checkpoint::totals(&self.db)?.bytes;
        if n_bytes <= most_bytes {
            return Ok(n_removed);
        }
        for file in checkpoint::evictable(&self.db)? {
            if n_bytes <= most_bytes {
                break;
            }
            // the file first: a row that stays behind is found again, a file without one only at the next start
            folder.remove(&file.name)?;
            checkpoint::remove(&self.db, &file.name)?;
            n_bytes = n_bytes.saturating_sub(file.bytes);
            n_removed += 1;
        }
        Ok(n_removed)
    }

    /// Removes the files that only this conversation and its checkpoints need: for good; how many. To be called when a
    /// conversation is deleted for good, before or after its row is.
    pub fn remove_contexts_of(&mut self, folder: &CheckpointFolder, conversation: &str) -> Result<usize> {
        checkpoint::remove_named_of(&self.db, conversation)?;
        checkpoint::unclaim(&self.db, conversation)?;
        self.remove_unclaimed(folder)
    }

    fn remove_unclaimed(&mut self, folder: &CheckpointFolder) -> Result<usize> {
        let unclaimed = checkpoint::unclaimed(&self.db)?;
        for name in &unclaimed {
            folder.remove(name)?;
            checkpoint::remove(&self.db, name)?;
        }
        Ok(unclaimed.len())
    }

    pub fn contexts(&self) -> Result<KvTotals> {
        checkpoint::totals(&self.db)
    }

    /// Names the end of a conversation's active branch. It needs `files`; where those aren't known, what the
    /// conversation used last.
    pub fn save_checkpoint(
        &mut self,
        conversation: &str,
        name: &str,
        files: Option<&[String]>,
    ) -> Result<CheckpointRow> {
        let row = self.conversation(conversation)?;
        let message = row.leaf.ok_or_else(|| {
            SessionError::new("session.empty", "This chat is still empty.", "Write a message first.")
        })?;
        let (id, created_ms) = (self.new_id(), self.now_ms());
        let conversation = conversation.to_owned();
        let row = CheckpointRow { id, name: name.into(), conversation, message, created_ms, bytes: 0 };
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        checkpoint::insert(&transaction, &row)?;
        match files {
            Some(files) => {
                files.iter().try_for_each(|file| checkpoint::claim(&transaction, &row.id, file))?
            }
            None => checkpoint::claim_newest_of(&transaction, &row.id, &row.conversation)?,
        }
        transaction.commit()?;
        checkpoint::get(&self.db, &row.id)
    }

    /// Named ones, oldest first; of one conversation, or of all.
    pub fn checkpoints(&self, conversation: Option<&str>) -> Result<Vec<CheckpointRow>> {
        checkpoint::list(&self.db, conversation)
    }

    /// Its place becomes the end of the active branch: what is written next is another branch. The conversation.
    pub fn open_checkpoint(&mut self, id: &str) -> Result<String> {
        let row = checkpoint::get(&self.db, id)?;
        self.conversation(&row.conversation)?;
        let message = message::get(&self.db, &row.message)?;
        conversation::set_leaf(&self.db, &row.conversation, Some(&message.id))?;
        Ok(row.conversation)
    }

    /// Forgets the name; files that only it needed go.
    pub fn remove_checkpoint(&mut self, folder: &CheckpointFolder, id: &str) -> Result<()> {
        if !checkpoint::remove_named(&self.db, id)? {
            return Err(SessionError::missing("checkpoint", id));
        }
        checkpoint::unclaim(&self.db, id)?;
        self.remove_unclaimed(folder)?;
        Ok(())
    }
}
