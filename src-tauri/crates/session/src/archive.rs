//! Export and import of whole conversations with every version, and restoring a backup.
//!
//! An import never changes existing data: ids that are already in use are replaced by new ones.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use io::{Io, RandomFile};
use rusqlite::{Connection, TransactionBehavior};

use crate::attachments::{IdRemap, searchable_text};
use crate::backup;
use crate::conversation::{Session, new_id};
use crate::db::{self, inspect};
use crate::error::{Result, SessionError};
use crate::images::ImageStore;
use crate::notes;
use crate::projects;
use crate::table::attachment::{self, MessageAttachments};
use crate::table::conversation::{self, ConversationRow};
use crate::table::folder::{self, FolderRow};
use crate::table::message::{self, MessageRow, MessageState};
use crate::table::token_log::{self, TokenLog};
use crate::table::{chunk, document, model, preset, search, setting};

/// A conversation with all of its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationArchive {
    /// The conversation's row.
    pub conversation: ConversationRow,
    /// Name of its folder.
    pub folder: Option<String>,
    /// Messages with their token logs, parents before children, without deleted ones.
    pub messages: Vec<(MessageRow, Vec<TokenLog>)>,
    /// Files attached to the messages.
    pub files: ArchivedFiles,
}

/// Files of a conversation's messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchivedFiles {
    /// Attachments by message.
    pub by_message: HashMap<String, MessageAttachments>,
    /// Texts by their SHA-256.
    pub documents: HashMap<String, Arc<str>>,
}

/// Outcome of restoring a backup, in conversations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestoreCounts {
    /// Conversations that did not exist.
    pub added: usize,
    /// Conversations that existed with other messages; the backup's version was added as a copy.
    pub duplicated: usize,
    /// Conversations that existed unchanged.
    pub unchanged: usize,
    /// Images that are damaged in the backup, and were left out.
    pub n_damaged_images: usize,
}

impl Session {
    /// Reads a whole conversation outside the trash. An answer in progress is included as far as it is saved.
    pub fn archive(&self, id: &str) -> Result<ConversationArchive> {
        self.conversation(id)?;
        archive(&self.db, id)
    }

    /// Adds an archived conversation. After an error nothing of it remains.
    pub fn import_archive(&mut self, archive: ConversationArchive) -> Result<ConversationRow> {
        let make = || new_id(&*self.clock);
        let now_ms = self.clock.now_utc_ms();
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let id = import_archive(&transaction, archive, now_ms, &make)?;
        transaction.commit()?;
        self.conversation(&id)
    }

    /// Writes a backup of everything to `path`, which must not exist: the database, and the originals of images.
    pub fn back_up_to(&self, path: &Path, io: &dyn Io) -> Result<()> {
        if io.exists(path)? {
            return Err(SessionError::new(
                "session.file_exists",
                format!("{} already exists.", path.display()),
                "Choose another name. Existing files are never overwritten.",
            ));
        }
        backup::copy_with(&self.db, path, io, &|copy| self.images(io).copy_into(copy))
    }

    /// The next rolling backup, if it is due and there is something to keep.
    pub fn backup_due(&self, io: &dyn Io) -> Result<Option<backup::BackupJob>> {
        let due = backup::BackupJob::due(&self.folder, self.clock.now_utc_ms(), io)?;
        let has_something = !self.conversations()?.is_empty();
        Ok(due.filter(|_| has_something && !self.is_read_only))
    }

    /// Adds what a backup has and this folder lacks. Existing data is never changed, and is backed up first.
    pub fn restore_from(&mut self, path: &Path, io: &dyn Io) -> Result<RestoreCounts> {
        let (from, n_damaged_images) = self.read_backup(path, io)?;
        backup::BackupJob::new(&self.folder, self.clock.now_utc_ms()).make(io)?;
        let mut restored = RestoreCounts { n_damaged_images, ..RestoreCounts::default() };
        let make = || new_id(&*self.clock);
        let now_ms = self.clock.now_utc_ms();
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // The list is newest first, and the conversation added last is shown first.
        for row in conversation::list(&from)?.into_iter().rev() {
            let mut archive = archive(&from, &row.id)?;
            match archive_presence(&transaction, &archive)? {
                ArchivePresence::Complete => {
                    restored.unchanged += 1;
                    continue;
                }
                ArchivePresence::Partial => {
                    restored.duplicated += 1;
                    archive.conversation.title.push_str(" (from the backup)");
                }
                ArchivePresence::Absent => restored.added += 1,
            }
            import_archive(&transaction, archive, now_ms, &make)?;
        }
        for (key, value) in setting::all(&from)? {
            if setting::get(&transaction, &key)?.is_none() {
                setting::put(&transaction, &key, &value)?;
            }
        }
        let paths: HashSet<_> =
            model::list(&transaction)?.into_iter().flat_map(|row| [row.path, row.id]).collect();
        for row in model::list(&from)? {
            if !paths.contains(&row.path) && !paths.contains(&row.id) {
                model::put(&transaction, &row)?;
            }
        }
        let names: HashSet<_> = preset::list(&transaction)?.into_iter().map(|row| row.name).collect();
        for row in preset::list(&from)?.into_iter().filter(|row| !names.contains(&row.name)) {
            preset::put(&transaction, &row)?;
        }
        projects::restore(&from, &transaction)?;
        notes::restore(&from, &transaction)?;
        transaction.commit()?;
        Ok(restored)
    }

    /// Opens a backup in memory, migrated to this schema version, and takes in its images; how many of those are damaged.
    /// The file itself is not changed.
    fn read_backup(&self, path: &Path, io: &dyn Io) -> Result<(Connection, usize)> {
        let copy = self.folder.join(format!("restoring-{}.tmp", self.owner.id));
        let opened = (|| {
            // Opened and measured once: whatever lies at the path is a regular file, and is copied no further.
            let source = io.open_to_read(path)?;
            if !is_database(&*source)? {
                return Err(SessionError::new(
                    "session.no_backup",
                    format!("{} is not an Inglenook backup.", path.display()),
                    "Choose a file created with \"Back up everything\".",
                ));
            }
            copy_backup(&*source, &copy, io)?;
            let mut from = Connection::open_in_memory()?;
            inspect::quick_check(&inspect::open_to_read(&copy)?)?;
            let n_damaged_images = ImageStore::new(&self.folder, io).take_from(&copy)?;
            let file = inspect::open_to_read(&copy)?;
            rusqlite::backup::Backup::new(&file, &mut from)?.run_to_completion(
                PAGES_AT_ONCE,
                std::time::Duration::ZERO,
                None,
            )?;
            if !has_conversations(&from) {
                return Err(SessionError::new(
                    "session.no_backup",
                    format!("{} contains no chats.", path.display()),
                    "Choose a file created with \"Back up everything\".",
                ));
            }
            db::migrate_copy(&mut from, path)?;
            Ok((from, n_damaged_images))
        })();
        for suffix in ["", "-wal", "-shm"] {
            let mut name = copy.as_os_str().to_owned();
            name.push(suffix);
            // These files may not exist.
            let _ = io.remove_file(Path::new(&name));
        }
        opened
    }
}

const PAGES_AT_ONCE: i32 = 1024;

/// Piece in which a backup is copied.
const COPY_BYTES: usize = 1 << 20;

/// First bytes of every SQLite database.
const DATABASE_MAGIC: &[u8; 16] = b"SQLite format 3\0";

fn is_database(file: &dyn RandomFile) -> Result<bool> {
    let mut magic = [0; DATABASE_MAGIC.len()];
    Ok(file.read_at(0, &mut magic)? == magic.len() && magic == *DATABASE_MAGIC)
}

/// Copies as many bytes as the file has at the start, piece by piece.
fn copy_backup(from: &dyn RandomFile, to: &Path, io: &dyn Io) -> Result<()> {
    let (n_bytes, mut piece) = (from.len()?, vec![0; COPY_BYTES]);
    io.write_stream(to, &mut |out| {
        let mut at = 0;
        while at < n_bytes {
            let most = (n_bytes - at).min(COPY_BYTES as u64) as usize;
            let n_read = from.read_at(at, &mut piece[..most]).map_err(std::io::Error::other)?;
            if n_read == 0 {
                break;
            }
            out.write_all(&piece[..n_read])?;
            at += n_read as u64;
        }
        Ok(())
    })?;
    Ok(())
}

fn has_conversations(db: &Connection) -> bool {
    db.prepare("SELECT id, title, leaf FROM conversation LIMIT 1").is_ok()
}

/// How much of an archived conversation exists already.
enum ArchivePresence {
    Absent,
    /// It exists, but not with all of these messages.
    Partial,
    Complete,
}

fn archive_presence(db: &Connection, archive: &ConversationArchive) -> Result<ArchivePresence> {
    if conversation::get(db, &archive.conversation.id).is_err() {
        return Ok(ArchivePresence::Absent);
    }
    for (row, _) in &archive.messages {
        match message::get(db, &row.id) {
            Ok(there) if there.text == row.text => {}
            Ok(_) | Err(_) => return Ok(ArchivePresence::Partial),
        }
    }
    Ok(ArchivePresence::Complete)
}

pub(crate) fn archive(db: &Connection, id: &str) -> Result<ConversationArchive> {
    let conversation = conversation::get(db, id)?;
    let folder = match &conversation.folder {
        Some(folder) => folder::get(db, folder).ok().map(|row| row.name),
        None => None,
    };
    let mut messages = Vec::new();
    for mut row in message::all(db, id)?.into_iter().filter(|row| row.deleted_by.is_none()) {
        let mut logs = token_log::of(db, &row.id)?;
        if row.state == MessageState::Streaming {
            let answer = chunk::assemble(db, &row.id)?;
            (row.text, row.reasoning) = (answer.text.clone(), answer.reasoning.clone());
            row.state = MessageState::Interrupted;
            logs = answer.log().into_iter().collect();
        }
        messages.push((row, logs));
    }
    let there: HashSet<&String> = messages.iter().map(|(row, _)| &row.id).collect();
    let mut files =
        ArchivedFiles { by_message: attachment::of_conversation(db, id)?, ..ArchivedFiles::default() };
    files.by_message.retain(|message, _| there.contains(message));
    for file in files.by_message.values().flat_map(|attached| &attached.files) {
        if !files.documents.contains_key(&file.document)
            && let Some(text) = document::text(db, &file.document)?
        {
            files.documents.insert(file.document.clone(), text.into());
        }
    }
    Ok(ConversationArchive { conversation, folder, messages, files })
}

/// Imports an archive and returns the conversation's id.
fn import_archive(
    db: &Connection,
    archive: ConversationArchive,
    now_ms: i64,
    make: &dyn Fn() -> String,
) -> Result<String> {
    let ConversationArchive { conversation: from, folder, messages, files } = archive;
    let is_free = conversation::get(db, &from.id).is_err() && !from.id.is_empty();
    let id = if is_free { from.id.clone() } else { make() };
    let folder = match folder {
        Some(name) => Some(find_or_add_folder(db, &name, now_ms, make)?),
        None => None,
    };
    let mut ids = HashMap::new();
    for (row, _) in &messages {
        let is_free = is_free && message::get(db, &row.id).is_err() && !row.id.is_empty();
        let new = if is_free { row.id.clone() } else { make() };
        if ids.insert(row.id.clone(), new).is_some() {
            return Err(broken("two messages have the same id"));
        }
    }
    let leaf = from.leaf.as_ref().and_then(|leaf| ids.get(leaf).cloned());
    let row = ConversationRow { id: id.clone(), folder, leaf: None, deleted_ms: None, ..from };
    conversation::insert(db, &row)?;
    let (mut last, mut there) = (None, HashSet::new());
    let name = |id: &str| if attachment::get(db, id).is_err() && !id.is_empty() { id.into() } else { make() };
    let mut files = IdRemap::new(store_documents(db, files)?, &name);
    for (from, logs) in messages {
        // A parent that comes later, or a message that is its own parent, would make a cycle.
        if from.parent.as_ref().is_some_and(|parent| !there.contains(parent)) {
            return Err(broken("a message comes before its parent, or its parent is missing"));
        }
        there.insert(from.id.clone());
        let attached = files.take(&from.id);
        let known = |id: &String| ids.get(id).cloned().ok_or_else(|| broken("a message's parent is missing"));
        let row = MessageRow {
            parent: from.parent.as_ref().map(known).transpose()?,
            chosen: from.chosen.as_ref().and_then(|chosen| ids.get(chosen).cloned()),
            conversation: id.clone(),
            deleted_by: None,
            deleted_ms: None,
            id: known(&from.id)?,
            ..from
        };
        message::insert(db, &row)?;
        attachment::insert(db, &row.id, &attached)?;
        search::put(db, &row.id, &searchable_text(&row.text, &attached))?;
        for log in &logs {
            token_log::put(db, &row.id, log)?;
        }
        last = Some(row.id);
    }
    conversation::set_leaf(db, &id, leaf.or(last).as_deref())?;
    Ok(id)
}

/// Stores the texts of files and returns the files that have one.
fn store_documents(db: &Connection, files: ArchivedFiles) -> Result<HashMap<String, MessageAttachments>> {
    let ArchivedFiles { mut by_message, documents } = files;
    for attached in by_message.values_mut() {
        attached.files.retain(|file| documents.contains_key(&file.document));
        for file in &attached.files {
            document::put(db, &file.document, &documents[&file.document])?;
        }
    }
    Ok(by_message)
}

fn broken(what: &str) -> SessionError {
    SessionError::new(
        "session.broken_tree",
        format!("The chat can't be imported: {what}."),
        "Export it again from the app it comes from.",
    )
}

fn find_or_add_folder(db: &Connection, name: &str, now_ms: i64, make: &dyn Fn() -> String) -> Result<String> {
    if let Some(row) = folder::list(db)?.into_iter().find(|row| row.name == name) {
        return Ok(row.id);
    }
    let row = FolderRow { id: make(), name: name.into(), created_ms: now_ms, parent: None };
    folder::put(db, &row)?;
    Ok(row.id)
}
