//! Projects: folders that give new conversations instructions, files, a preset and a model.
//!
//! Guarantees that the text of a project's file stays as long as the project has it, and that no index outlives a change
//! of the files it was made from.

use rusqlite::{Connection, TransactionBehavior};

use crate::conversation::Session;
use crate::error::Result;
use crate::folders::MAX_FOLDER_LEVELS;
use crate::table::document;
use crate::table::folder::{self, FolderRow};
use crate::table::project::{self, ProjectFileRow};

/// A folder that is a project, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectRow {
    /// The folder.
    pub folder: FolderRow,
    /// JSON of the layer above.
    pub body: String,
}

impl Session {
    /// Ids of the folders that are projects.
    pub fn project_folders(&self) -> Result<Vec<String>> {
        Ok(project::list(self.db())?.into_iter().map(|(folder, _)| folder).collect())
    }

    /// The project that a folder belongs to: the folder itself, or the nearest one around it that is a project.
    pub fn project_around(&self, folder: &str) -> Result<Option<ProjectRow>> {
        let (folders, projects) = (folder::list(self.db())?, project::list(self.db())?);
        let mut at = Some(folder::get(self.db(), folder)?);
        for _ in 0..MAX_FOLDER_LEVELS {
            let Some(folder) = at else { break };
            if let Some((_, body)) = projects.iter().find(|(id, _)| *id == folder.id) {
                return Ok(Some(ProjectRow { body: body.clone(), folder }));
            }
            at = folder.parent.and_then(|id| folders.iter().find(|row| row.id == id).cloned());
        }
        Ok(None)
    }

    /// The project that a folder is. None: it is none, or there is no such folder.
    pub fn project(&self, folder: &str) -> Result<Option<ProjectRow>> {
        let found = project::list(self.db())?.into_iter().find(|(id, _)| id == folder);
        let folder = folder::list(self.db())?.into_iter().find(|row| row.id == folder);
        Ok(folder.zip(found).map(|(folder, (_, body))| ProjectRow { folder, body }))
    }

    /// Makes a folder a project, or replaces what its project says. `body` is JSON of the layer above.
    pub fn put_project(&mut self, folder: &str, body: &str) -> Result<ProjectRow> {
        let row = folder::get(self.db(), folder)?;
        project::put(self.db(), folder, body)?;
        Ok(ProjectRow { folder: row, body: body.into() })
    }

    /// Deletes a project with its files. The folder and its conversations stay. No error if it is none.
    pub fn remove_project(&mut self, folder: &str) -> Result<FolderRow> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let row = folder::get(&transaction, folder)?;
        project::remove(&transaction, folder)?;
        document::sweep(&transaction)?;
        transaction.commit()?;
        Ok(row)
    }

    /// Files of a project, oldest first, each before its scanned pages.
    pub fn project_files(&self, folder: &str) -> Result<Vec<ProjectFileRow>> {
        project::files(self.db(), folder)
    }

    /// A file of a project by its id.
    pub fn project_file(&self, id: &str) -> Result<ProjectFileRow> {
        project::file(self.db(), id)
    }

    /// Adds a file to a project, then its scanned pages, each with its text. The project's indexes are deleted.
    pub fn add_project_file(&mut self, rows: &[(ProjectFileRow, &str)]) -> Result<()> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (row, text) in rows {
            folder::get(&transaction, &row.folder)?;
            document::put(&transaction, &row.document, text)?;
            project::insert_file(&transaction, row)?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// Removes a file with its pages from its project and returns it. Its text goes with it, unless a message has it.
    pub fn remove_project_file(&mut self, id: &str) -> Result<ProjectFileRow> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let row = project::file(&transaction, id)?;
        project::remove_file(&transaction, &row)?;
        document::sweep(&transaction)?;
        transaction.commit()?;
        Ok(row)
    }

    /// A stored index of a project's files.
    pub fn search_index(&self, folder: &str, key: &str) -> Result<Option<Vec<u8>>> {
        project::index(self.db(), folder, key)
    }

    /// Stores an index of a project's files. Nothing is stored where the folder is no project any more.
    pub fn put_search_index(&mut self, folder: &str, key: &str, body: &[u8]) -> Result<()> {
        match self.project_folders()?.iter().any(|id| id == folder) {
            true => project::put_index(self.db(), folder, key, body),
            false => Ok(()),
        }
    }
}

/// Copies the projects of a backup into folders of the same name that are none.
pub(crate) fn restore(from: &Connection, into: &Connection) -> Result<()> {
    let there = project::list(into)?;
    for (id, body) in project::list(from)? {
        let name = folder::get(from, &id)?.name;
        let folder = match folder::list(into)?.into_iter().find(|row| row.name == name) {
            Some(row) => row,
            None => {
                let row = FolderRow { parent: None, ..folder::get(from, &id)? };
                folder::put(into, &row)?;
                row
            }
        };
        if there.iter().any(|(id, _)| *id == folder.id) {
            continue;
        }
        project::put(into, &folder.id, &body)?;
        for file in project::files(from, &id)? {
            let Some(text) = document::text(from, &file.document)? else { continue };
            if project::file(into, &file.id).is_err() {
                document::put(into, &file.document, &text)?;
                project::insert_file(into, &ProjectFileRow { folder: folder.id.clone(), ..file })?;
            }
        }
    }
    Ok(())
}
