//! The contents of files that programs store over HTTP, each in a file of the disk that has its id as name.
//!
//! Guarantees that no id leads outside the folder, and that all contents together stay within a limit.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use contract::{Error, ErrorKind, Result};
use io::Io;

/// Largest content. It is read as a whole, so it has to fit into memory beside a model.
pub const MAX_FILE_BYTES: u64 = 256 << 20;

/// Most bytes of all contents together: programs seldom remove what they store.
pub const MAX_TOTAL_BYTES: u64 = 8 << 30;

/// Longest id.
const MAX_ID_BYTES: usize = 96;

/// The folder with the contents.
#[derive(Clone)]
pub struct FileContents {
    io: Arc<dyn Io>,
    folder: PathBuf,
    max_total_bytes: u64,
}

impl FileContents {
    /// The contents in a folder, which is made when the first one is stored.
    pub fn new(io: Arc<dyn Io>, folder: PathBuf) -> Self {
        Self { io, folder, max_total_bytes: MAX_TOTAL_BYTES }
    }

    /// Whether `n_bytes` more fit, without what `used` says is not listed any more.
    ///
    /// `used`: the ids of everything that is listed. It is asked for only where the limit is reached.
    pub fn make_room(&self, n_bytes: u64, used: impl FnOnce() -> Result<HashSet<String>>) -> Result<()> {
        if n_bytes > MAX_FILE_BYTES {
            return Err(too_large(n_bytes));
        }
        if self.total_bytes()?.saturating_add(n_bytes) <= self.max_total_bytes {
            return Ok(());
        }
        self.remove_unlisted(&used()?)?;
        let total = self.total_bytes()?;
        match total.saturating_add(n_bytes) <= self.max_total_bytes {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Limit,
                "file.store_full",
                format!("Stored files have {total} bytes of at most {}.", self.max_total_bytes),
                "Delete files that are no longer needed with DELETE /v1/files/{id}.",
            )),
        }
    }

    /// Stores a content, or replaces it.
    pub fn put(&self, id: &str, content: &[u8]) -> Result<()> {
        let path = self.path(id)?;
        self.io.create_dir_all(&self.folder)?;
        Ok(self.io.write_atomic(&path, content)?)
    }

    /// Stores the contents of `parts`, one after the other, as one.
    pub fn join(&self, id: &str, parts: &[String]) -> Result<u64> {
        let path = self.path(id)?;
        let paths = parts.iter().map(|part| self.path(part)).collect::<Result<Vec<_>>>()?;
        let mut n_bytes: u64 = 0;
        for part in &paths {
            n_bytes = n_bytes.saturating_add(self.io.len(part)?);
        }
        if n_bytes > MAX_FILE_BYTES {
            return Err(too_large(n_bytes));
        }
        self.io.create_dir_all(&self.folder)?;
        self.io.write_stream(&path, &mut |file| {
            for part in &paths {
                file.write_all(&self.io.read_within(part, MAX_FILE_BYTES).map_err(std::io::Error::other)?)?;
            }
            Ok(())
        })?;
        Ok(n_bytes)
    }

    /// Adds to the end of a content, which is made if it is missing.
    pub fn append(&self, id: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path(id)?;
        self.io.create_dir_all(&self.folder)?;
        Ok(self.io.append(&path, bytes)?)
    }

    /// Gives a content another id. False if there is none.
    pub fn rename(&self, from: &str, to: &str) -> Result<bool> {
        let (from, to) = (self.path(from)?, self.path(to)?);
        if !self.io.exists(&from)? {
            return Ok(false);
        }
        self.io.rename(&from, &to)?;
        Ok(true)
    }

    /// A whole content. `None`: there is none with that id.
    pub fn get(&self, id: &str) -> Result<Option<Vec<u8>>> {
        let path = self.path(id)?;
        match self.io.exists(&path)? {
            true => Ok(Some(self.io.read_within(&path, MAX_FILE_BYTES)?)),
            false => Ok(None),
        }
    }

    /// Length of a content in bytes; 0 if there is none.
    pub fn n_bytes(&self, id: &str) -> Result<u64> {
        let path = self.path(id)?;
        match self.io.exists(&path)? {
            true => Ok(self.io.len(&path)?),
            false => Ok(0),
        }
    }

    /// Removes a content. No error if there is none.
    pub fn remove(&self, id: &str) -> Result<()> {
        let path = self.path(id)?;
        match self.io.exists(&path)? {
            true => Ok(self.io.remove_file(&path)?),
            false => Ok(()),
        }
    }

    /// Removes what belongs to nothing any more. A name may have an end behind a dot after the id.
    fn remove_unlisted(&self, listed: &HashSet<String>) -> Result<()> {
        for path in self.stored_paths()? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let id = name.split_once('.').map_or(name, |(id, _)| id);
            if !listed.contains(id) {
                self.io.remove_file(&path)?;
            }
        }
        Ok(())
    }

    fn total_bytes(&self) -> Result<u64> {
        if !self.io.exists(&self.folder)? {
            return Ok(0);
        }
        let mut total: u64 = 0;
        for path in self.stored_paths()? {
            match self.io.len(&path) {
                Ok(n_bytes) => total = total.saturating_add(n_bytes),
                // Another request has removed it meanwhile.
                Err(_) if !self.io.exists(&path)? => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(total)
    }

    /// Paths of all contents. Hidden files are contents that another request is just writing.
    fn stored_paths(&self) -> Result<Vec<PathBuf>> {
        let is_hidden =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        Ok(self.io.list(&self.folder)?.into_iter().filter(|path| !is_hidden(path)).collect())
    }

    fn path(&self, id: &str) -> Result<PathBuf> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let is_id = !id.is_empty() && id.len() <= MAX_ID_BYTES && id.chars().all(is_plain);
        match is_id && !id.starts_with('.') {
            true => Ok(self.folder.join(Path::new(id))),
            false => Err(Error::not_found(
                "file.unknown",
                format!("There is no file with the id {id}."),
                "List the files with GET /v1/files.",
            )),
        }
    }
}

fn too_large(n_bytes: u64) -> Error {
    Error::input(
        "file.too_large",
        format!("The file has {n_bytes} bytes; the most is {MAX_FILE_BYTES}."),
        "Split it into smaller files.",
    )
}

#[cfg(test)]
mod tests {
    use io::RealIo;

    use super::*;

    fn contents(name: &str, max_total_bytes: u64) -> FileContents {
        let folder = std::env::temp_dir().join(format!("api-store-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        FileContents { max_total_bytes, ..FileContents::new(Arc::new(RealIo), folder) }
    }

    fn listed(ids: &[&str]) -> Result<HashSet<String>> {
        Ok(ids.iter().map(|id| (*id).to_owned()).collect())
    }

    #[test]
    fn contents_are_stored_joined_and_removed() {
        let contents = contents("joined", 100);
        assert_eq!(contents.get("file-1").unwrap(), None);
        contents.put("part_1", b"ab").unwrap();
        contents.append("part_2", b"c").unwrap();
        contents.append("part_2", b"d").unwrap();
        let parts = ["part_2".to_owned(), "part_1".to_owned()];
        assert_eq!(contents.join("file-1", &parts).unwrap(), 4);
        assert_eq!(contents.get("file-1").unwrap().as_deref(), Some(&b"cdab"[..]));
        assert!(contents.rename("file-1", "file-2").unwrap());
        assert!(!contents.rename("file-1", "file-2").unwrap());
        assert_eq!((contents.n_bytes("file-2").unwrap(), contents.n_bytes("file-1").unwrap()), (4, 0));
        contents.remove("file-2").unwrap();
        contents.remove("file-2").unwrap();
        assert_eq!(contents.get("file-2").unwrap(), None);
        std::fs::remove_dir_all(&contents.folder).unwrap();
    }

    #[test]
    fn ids_stay_in_the_folder() {
        let contents = contents("ids", 100);
        for id in ["", "..", "../a", "a/b", "/etc/passwd", "a\\b", ".hidden", "a\0", &"a".repeat(97)] {
            assert_eq!(contents.put(id, b"x").unwrap_err().code(), "file.unknown", "{id}");
            assert_eq!(contents.get(id).unwrap_err().code(), "file.unknown", "{id}");
        }
        assert!(!contents.folder.exists());
    }

    #[test]
    fn what_is_just_being_written_is_left_alone() {
        let contents = contents("hidden", 10);
        contents.put("file-1", b"12345").unwrap();
        let hidden = contents.folder.join(".file-2.tmp");
        std::fs::write(&hidden, b"1234567890").unwrap();
        contents.make_room(5, || panic!("the limit is not reached")).unwrap();
        contents.make_room(6, || listed(&[])).unwrap();
        assert!(hidden.exists());
        std::fs::remove_dir_all(&contents.folder).unwrap();
    }

    #[test]
    fn a_full_store_drops_what_is_not_listed() {
        let contents = contents("full", 10);
        contents.put("file-1", b"12345").unwrap();
        contents.put("batch_1.out", b"123").unwrap();
        let all = || listed(&["file-1", "batch_1"]);
        contents.make_room(2, || panic!("the limit is not reached")).unwrap();
        assert_eq!(contents.make_room(3, all).unwrap_err().code(), "file.store_full");
        contents.make_room(3, || listed(&["file-1"])).unwrap();
        assert_eq!((contents.n_bytes("file-1").unwrap(), contents.n_bytes("batch_1.out").unwrap()), (5, 0));
        assert_eq!(contents.make_room(MAX_FILE_BYTES + 1, all).unwrap_err().code(), "file.too_large");
        std::fs::remove_dir_all(&contents.folder).unwrap();
    }
}
