//! Folders, in which conversations and other folders lie.
//!
//! Guarantees that every folder is reached from one that lies in none: nothing is put into itself, and nothing deeper
//! than people can follow.

use rusqlite::TransactionBehavior;

use crate::conversation::Session;
use crate::error::{Result, SessionError};
use crate::table::conversation::ConversationRow;
use crate::table::folder::{self, FolderRow};

/// Folders that lie in one another. Deeper ones leave no room for a name in a column beside the chat.
pub const MAX_FOLDER_LEVELS: usize = 5;

/// What a removed folder held, where it lies now.
#[derive(Debug, Clone, PartialEq)]
pub struct RemovedFolder {
    pub folders: Vec<FolderRow>,
    pub conversations: Vec<ConversationRow>,
}

impl Session {
    /// By name.
    pub fn folders(&self) -> Result<Vec<FolderRow>> {
        folder::list(&self.db)
    }

    /// In another folder, or in none.
    pub fn add_folder(&mut self, name: &str, parent: Option<&str>) -> Result<FolderRow> {
        let row = FolderRow {
            id: self.new_id(),
            name: name.into(),
            created_ms: self.clock.now_utc_ms(),
            parent: None,
        };
        let rows = folder::list(&self.db)?;
        let row = FolderRow { parent: place_of(&rows, &row, parent)?, ..row };
        folder::put(&self.db, &row)?;
        Ok(row)
    }

    pub fn rename_folder(&mut self, id: &str, name: &str) -> Result<FolderRow> {
        let row = FolderRow { name: name.into(), ..folder::get(&self.db, id)? };
        folder::put(&self.db, &row)?;
        Ok(row)
    }

    /// Into another folder, or out of any, with all that lies in it.
    pub fn move_folder(&mut self, id: &str, parent: Option<&str>) -> Result<FolderRow> {
        // Two windows that each move one into the other must not make a ring.
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let row = folder::get(&transaction, id)?;
        let rows = folder::list(&transaction)?;
        let row = FolderRow { parent: place_of(&rows, &row, parent)?, ..row };
        folder::put(&transaction, &row)?;
        transaction.commit()?;
        Ok(row)
    }

    /// What lies in it stays, and lies where it lay.
    pub fn remove_folder(&mut self, id: &str) -> Result<RemovedFolder> {
        let row = folder::get(&self.db, id)?;
        let inside = self.conversations()?.into_iter().filter(|row| row.folder.as_deref() == Some(id));
        let inside: Vec<_> = inside.map(|row| row.id).collect();
        let below = self.folders()?.into_iter().filter(|row| row.parent.as_deref() == Some(id));
        let below: Vec<_> = below.map(|row| row.id).collect();
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        folder::remove(&transaction, &row)?;
        transaction.commit()?;
        Ok(RemovedFolder {
            folders: below.iter().map(|id| folder::get(&self.db, id)).collect::<Result<_>>()?,
            conversations: inside.iter().map(|id| self.conversation(id)).collect::<Result<_>>()?,
        })
    }
}

/// The parent, where `row` may lie in it.
fn place_of(rows: &[FolderRow], row: &FolderRow, parent: Option<&str>) -> Result<Option<String>> {
    let Some(parent) = parent else { return Ok(None) };
    let find = |id: &str| rows.iter().find(|row| row.id == id);
    let mut above = Vec::new();
    let mut at = Some(find(parent).ok_or_else(|| SessionError::missing("folder", parent))?);
    while let Some(now) = at.filter(|_| above.len() <= rows.len()) {
        above.push(now);
        at = now.parent.as_deref().and_then(find);
    }
    if above.iter().any(|it| it.id == row.id) {
        let message = format!("The folder \"{}\" can't lie in itself.", row.name);
        let remedy = "Choose a folder that does not lie in it.";
        return Err(SessionError::new("session.folder_in_itself", message, remedy));
    }
    let levels = above.len() + height(rows, &row.id, rows.len());
    if levels > MAX_FOLDER_LEVELS {
        let message =
            format!("There would be {levels} folders in one another; the most is {MAX_FOLDER_LEVELS}.");
        return Err(SessionError::new("session.folder_too_deep", message, "Choose a folder further out."));
    }
    Ok(Some(parent.to_owned()))
}

/// Levels of folders from this one down, itself counted; `most` bounds the way.
fn height(rows: &[FolderRow], id: &str, most: usize) -> usize {
    if most == 0 {
        return 1;
    }
    let below = rows.iter().filter(|row| row.parent.as_deref() == Some(id));
    1 + below.map(|row| height(rows, &row.id, most - 1)).max().unwrap_or(0)
}
