//! Files that programs stored over HTTP: an entry in the database for each, and its content in the data folder.

use std::collections::HashSet;
use std::sync::Arc;

use api_store::{FileContents, FileRecord};
use contract::{Error, Result};

use super::api_objects::{ApiObject, ApiObjectKind};
use crate::App;

/// Folder of the contents within the data folder.
const FOLDER: &str = "api-files";

/// A stored file, without its content.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiFile {
    pub id: String,
    /// Id of the key that stored it; other keys don't see it.
    pub owner: String,
    pub record: FileRecord,
    pub created_ms: i64,
}

impl App {
    /// The contents of files, and of what becomes one: parts of uploads, results of batches.
    pub fn file_contents(&self) -> FileContents {
        FileContents::new(Arc::clone(&self.ctx().io), self.dirs().data.join(FOLDER))
    }

    /// Makes room for the content of a file, a part or a result.
    pub fn make_room_for_file(&self, n_bytes: u64) -> Result<()> {
        let listed =
            || -> Result<HashSet<String>> { Ok(self.store().api_object_ids()?.into_iter().collect()) };
        self.file_contents().make_room(n_bytes, listed)
    }

    /// Stores a file. The content comes first: an entry always has one.
    pub fn add_api_file(&self, file: &ApiFile, content: &[u8]) -> Result<()> {
        self.make_room_for_file(file.record.n_bytes)?;
        self.file_contents().put(&file.id, content)?;
        self.list_api_file(file)
    }

    /// Lists a file whose content is stored already.
    pub fn list_api_file(&self, file: &ApiFile) -> Result<()> {
        let body = serde_json::to_value(&file.record).map_err(Error::bug)?;
        self.put_api_objects(vec![ApiObject {
            id: file.id.clone(),
            kind: ApiObjectKind::File,
            owner: file.owner.clone(),
            parent: None,
            body,
            created_ms: file.created_ms,
        }])
    }

    /// One of the owner's files. Errors: `file.unknown`.
    pub fn api_file(&self, owner: &str, id: &str) -> Result<ApiFile> {
        let found = self.api_object(ApiObjectKind::File, owner, id)?.and_then(file);
        match found {
            Some(file) if file.record.is_expired(self.now_ms()) => {
                self.remove_api_file(owner, id)?;
                Err(unknown(id))
            }
            Some(file) => Ok(file),
            None => Err(unknown(id)),
        }
    }

    /// The owner's files, oldest first.
    pub fn api_files(&self, owner: &str) -> Result<Vec<ApiFile>> {
        let now_ms = self.now_ms();
        let all = self.api_objects(ApiObjectKind::File, owner, None)?.into_iter().filter_map(file);
        Ok(all.filter(|file| !file.record.is_expired(now_ms)).collect())
    }

    /// A file with its content. Errors: `file.unknown`, `file.no_content`.
    pub fn api_file_content(&self, owner: &str, id: &str) -> Result<(ApiFile, Vec<u8>)> {
        let file = self.api_file(owner, id)?;
        let content = self.file_contents().get(id)?.ok_or_else(|| {
            let message = format!("The content of the file {id} is missing in the folder {FOLDER}.");
            Error::not_found("file.no_content", message, "Delete the file and upload it again.")
        })?;
        Ok((file, content))
    }

    /// Deletes a file. False if the owner has none with that id.
    pub fn remove_api_file(&self, owner: &str, id: &str) -> Result<bool> {
        let is_removed = self.remove_api_object(ApiObjectKind::File, owner, id)?;
        if is_removed {
            self.file_contents().remove(id)?;
        }
        Ok(is_removed)
    }

    /// Answers that are being written or wait, of every interface.
    pub fn n_open_answers(&self) -> usize {
        self.services().turns.n_open()
    }

    fn now_ms(&self) -> i64 {
        self.ctx().clock.now_utc_ms()
    }
}

fn file(object: ApiObject) -> Option<ApiFile> {
    let ApiObject { id, owner, body, created_ms, .. } = object;
    let record = serde_json::from_value(body).ok()?;
    Some(ApiFile { id, owner, record, created_ms })
}

fn unknown(id: &str) -> Error {
    Error::not_found(
        "file.unknown",
        format!("There is no file with the id {id}."),
        "List the files with GET /v1/files.",
    )
}
