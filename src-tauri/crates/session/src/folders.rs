//! Folders of conversations, nested up to [`MAX_FOLDER_LEVELS`] levels.
//!
//! Guarantees that folders form a tree: no folder contains itself.

use rusqlite::TransactionBehavior;

use crate::conversation::Session;
use crate::error::{Result, SessionError};
use crate::table::conversation::ConversationRow;
use crate::table::document;
use crate::table::folder::{self, FolderRow};

/// Maximum nesting. Deeper folders leave no space for their name in the sidebar.
pub const MAX_FOLDER_LEVELS: usize = 5;

/// Contents of a removed folder, at their new location.
#[derive(Debug, Clone, PartialEq)]
pub struct RemovedFolder {
    /// Folders that were directly inside.
    pub folders: Vec<FolderRow>,
    /// Conversations that were directly inside.
    pub conversations: Vec<ConversationRow>,
}

impl Session {
    /// Lists folders by name.
    pub fn folders(&self) -> Result<Vec<FolderRow>> {
        folder::list(&self.db)
    }

    /// Adds a folder, inside `parent` or at the top level.
    pub fn add_folder(&mut self, name: &str, parent: Option<&str>) -> Result<FolderRow> {
        let row = FolderRow {
            id: self.new_id(),
            name: name.into(),
            created_ms: self.clock.now_utc_ms(),
            parent: None,
        };
        let rows = folder::list(&self.db)?;
        let row = FolderRow { parent: checked_parent(&rows, &row, parent)?, ..row };
        folder::put(&self.db, &row)?;
        Ok(row)
    }

    /// Renames a folder.
    pub fn rename_folder(&mut self, id: &str, name: &str) -> Result<FolderRow> {
        let row = FolderRow { name: name.into(), ..folder::get(&self.db, id)? };
        folder::put(&self.db, &row)?;
        Ok(row)
    }

    /// Moves a folder with its contents into another folder, or to the top level.
    pub fn move_folder(&mut self, id: &str, parent: Option<&str>) -> Result<FolderRow> {
        // Two processes that each move one folder into the other must not make a cycle.
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let row = folder::get(&transaction, id)?;
        let rows = folder::list(&transaction)?;
        let row = FolderRow { parent: checked_parent(&rows, &row, parent)?, ..row };
        folder::put(&transaction, &row)?;
        transaction.commit()?;
        Ok(row)
    }

    /// Removes a folder. Its contents move to the enclosing folder.
    pub fn remove_folder(&mut self, id: &str) -> Result<RemovedFolder> {
        let row = folder::get(&self.db, id)?;
        let inside = self.conversations()?.into_iter().filter(|row| row.folder.as_deref() == Some(id));
        let inside: Vec<_> = inside.map(|row| row.id).collect();
        let below = self.folders()?.into_iter().filter(|row| row.parent.as_deref() == Some(id));
        let below: Vec<_> = below.map(|row| row.id).collect();
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        folder::remove(&transaction, &row)?;
        // Of the files of a project that it was.
        document::sweep(&transaction)?;
        transaction.commit()?;
        Ok(RemovedFolder {
            folders: below.iter().map(|id| folder::get(&self.db, id)).collect::<Result<_>>()?,
            conversations: inside.iter().map(|id| self.conversation(id)).collect::<Result<_>>()?,
        })
    }
}

/// Checks that `row` may be put into `parent` and returns the parent.
fn checked_parent(rows: &[FolderRow], row: &FolderRow, parent: Option<&str>) -> Result<Option<String>> {
    let Some(parent) = parent else { return Ok(None) };
    let find = |id: &str| rows.iter().find(|row| row.id == id);
    let mut above = Vec::new();
    let mut at = Some(find(parent).ok_or_else(|| SessionError::missing("folder", parent))?);
    while let Some(now) = at.filter(|_| above.len() <= rows.len()) {
        above.push(now);
        at = now.parent.as_deref().and_then(find);
    }
    if above.iter().any(|it| it.id == row.id) {
        let message = format!("The folder \"{}\" can't contain itself.", row.name);
        let remedy = "Choose a folder outside of it.";
        return Err(SessionError::new("session.folder_in_itself", message, remedy));
    }
    let levels = above.len() + height(rows, &row.id, rows.len());
    if levels > MAX_FOLDER_LEVELS {
        let message =
            format!("Folders would be nested {levels} levels deep; the limit is {MAX_FOLDER_LEVELS}.");
        return Err(SessionError::new(
            "session.folder_too_deep",
            message,
            "Choose a folder closer to the top level.",
        ));
    }
    Ok(Some(parent.to_owned()))
}

/// Levels of folders from this one down, itself included; `max_depth` bounds the recursion.
fn height(rows: &[FolderRow], id: &str, max_depth: usize) -> usize {
    if max_depth == 0 {
        return 1;
    }
    let below = rows.iter().filter(|row| row.parent.as_deref() == Some(id));
    1 + below.map(|row| height(rows, &row.id, max_depth - 1)).max().unwrap_or(0)
}
