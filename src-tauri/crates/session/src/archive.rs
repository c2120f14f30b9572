//! Conversations as a archive, with every version: taken out to be kept elsewhere, and taken in again.
//!
//! Taking in never touches what is there: ids that are taken already are made anew.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use io::Io;
use rusqlite::{Connection, TransactionBehavior};

use crate::attachments::{IdRemap, indexed};
use crate::conversation::{Session, new_id};
use crate::error::{Result, SessionError};
use crate::table::attachment::{self, MessageAttachments};
use crate::table::conversation::{self, ConversationRow};
use crate::table::folder::{self, FolderRow};
use crate::table::message::{self, MessageRow, MessageState};
use crate::table::token_log::{self, TokenLog};
use crate::table::{chunk, document, model, preset, search, setting};
use crate::{backup, db};

/// A conversation with all of its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationArchive {
    pub conversation: ConversationRow,
    /// Name of the folder it lies in.
    pub folder: Option<String>,
    /// Parents before their children; removed ones are not among them.
    pub messages: Vec<(MessageRow, Vec<TokenLog>)>,
    pub files: ArchivedFiles,
}

/// Files of a conversation's messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchivedFiles {
    /// By message.
    pub by_message: HashMap<String, MessageAttachments>,
    /// Texts by their SHA-256.
    pub documents: HashMap<String, Arc<str>>,
}

/// What a restore brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestoreCounts {
    /// Conversations that were not there.
    pub added: usize,
    /// Those that were there with other messages: the backup's lie beside them.
    pub duplicated: usize,
    /// Those that were there as they are.
    pub unchanged: usize,
}

impl Session {
    /// Not one that lies in the trash. An answer that is being written is taken as far as it is saved.
    pub fn archive(&self, id: &str) -> Result<ConversationArchive> {
        self.conversation(id)?;
        archive(&self.db, id)
    }

    /// Adds a conversation as it was taken out. Errors leave nothing of it.
    pub fn import_archive(&mut self, archive: ConversationArchive) -> Result<ConversationRow> {
        let make = || new_id(&*self.clock);
        let now_ms = self.clock.now_utc_ms();
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let id = import_archive(&transaction, archive, now_ms, &make)?;
        transaction.commit()?;
        self.conversation(&id)
    }

    /// Everything there is as one file at `path`, which must be new.
    pub fn back_up_to(&self, path: &Path, io: &dyn Io) -> Result<()> {
        if io.exists(path)? {
            return Err(SessionError::new(
                "session.file_exists",
                format!("{} already exists.", path.display()),
                "Choose another name. Existing files are never overwritten.",
            ));
        }
        backup::copy(&self.db, path, io)
    }

    /// Adds what a backup has and this folder lacks. Nothing that is there is changed; besides, a backup of it is made
    /// first.
    pub fn restore_from(&mut self, path: &Path, io: &dyn Io) -> Result<RestoreCounts> {
        let from = self.read_backup(path, io)?;
        backup::BackupJob::now(&self.folder, self.clock.now_utc_ms()).make(io)?;
        let mut restored = RestoreCounts::default();
        let make = || new_id(&*self.clock);
        let now_ms = self.clock.now_utc_ms();
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // The list is newest first, and what is added last comes first.
        for row in conversation::list(&from)?.into_iter().rev() {
            let mut archive = archive(&from, &row.id)?;
            match archive_presence(&transaction, &archive)? {
                ArchivePresence::All => {
                    restored.unchanged += 1;
                    continue;
                }
                ArchivePresence::Some => {
                    restored.duplicated += 1;
                    archive.conversation.title.push_str(" (from the backup)");
                }
                ArchivePresence::Nothing => restored.added += 1,
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
        transaction.commit()?;
        Ok(restored)
    }

    /// A backup opened in this version's form: a copy of it, which is all that is changed.
    fn read_backup(&self, path: &Path, io: &dyn Io) -> Result<Connection> {
        let copy = self.folder.join(format!("restoring-{}.tmp", self.owner.id));
        let opened = (|| {
            let bytes = io.read(path)?;
            if !bytes.starts_with(b"SQLite format 3\0") {
                return Err(SessionError::new(
                    "session.no_backup",
                    format!("{} is not an Inglenook backup.", path.display()),
                    "Choose a file created with \"Back up everything\".",
                ));
            }
            io.write_atomic(&copy, &bytes)?;
            let mut from = Connection::open_in_memory()?;
            let file = db::open_to_read(&copy)?;
            db::quick_check(&file)?;
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
            Ok(from)
        })();
        for suffix in ["", "-wal", "-shm"] {
            let mut name = copy.as_os_str().to_owned();
            name.push(suffix);
            // There may be none of them.
            let _ = io.remove_file(Path::new(&name));
        }
        opened
    }
}

const PAGES_AT_ONCE: i32 = 1024;

fn has_conversations(db: &Connection) -> bool {
    db.prepare("SELECT id, title, leaf FROM conversation LIMIT 1").is_ok()
}

/// How much of a conversation is there already.
enum ArchivePresence {
    Nothing,
    /// It is there, but not with all of these messages.
    Some,
    All,
}

fn archive_presence(db: &Connection, archive: &ConversationArchive) -> Result<ArchivePresence> {
    if conversation::get(db, &archive.conversation.id).is_err() {
        return Ok(ArchivePresence::Nothing);
    }
    for (row, _) in &archive.messages {
        match message::get(db, &row.id) {
            Ok(there) if there.text == row.text => {}
            Ok(_) | Err(_) => return Ok(ArchivePresence::Some),
        }
    }
    Ok(ArchivePresence::All)
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

/// The id it has now.
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
        Some(name) => Some(folder_named(db, &name, now_ms, make)?),
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
    let mut files = IdRemap::new(kept(db, files)?, &name);
    for (from, logs) in messages {
        // A parent that comes later, or a message that is its own, would make a circle.
        if from.parent.as_ref().is_some_and(|parent| !there.contains(parent)) {
            return Err(broken("a message comes before the one that it hangs on, or that one isn't there"));
        }
        there.insert(from.id.clone());
        let attached = files.of(&from.id);
        let known = |id: &String| {
            ids.get(id).cloned().ok_or_else(|| broken("a message hangs on one that isn't there"))
        };
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
        search::put(db, &row.id, &indexed(&row.text, &attached))?;
        for log in &logs {
            token_log::put(db, &row.id, log)?;
        }
        last = Some(row.id);
    }
    conversation::set_leaf(db, &id, leaf.or(last).as_deref())?;
    Ok(id)
}

/// Puts the texts of files into their place; the files that have one.
fn kept(db: &Connection, files: ArchivedFiles) -> Result<HashMap<String, MessageAttachments>> {
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

fn folder_named(db: &Connection, name: &str, now_ms: i64, make: &dyn Fn() -> String) -> Result<String> {
    if let Some(row) = folder::list(db)?.into_iter().find(|row| row.name == name) {
        return Ok(row.id);
    }
    let row = FolderRow { id: make(), name: name.into(), created_ms: now_ms, parent: None };
    folder::put(db, &row)?;
    Ok(row.id)
}
