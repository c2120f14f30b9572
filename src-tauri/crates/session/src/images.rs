//! Originals of images: files named by the SHA-256 of their bytes, once for all messages.
//!
//! Which images a message has is known to the layer above. A file never holds bytes of another hash.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use io::Io;
use rusqlite::Connection;
use sha2::{Digest, Sha256};

use crate::conversation::Session;
use crate::error::{Result, SessionError};

/// Folder of the originals, below the data folder.
const FOLDER: &str = "images";

/// Hexadecimal digits of a SHA-256.
const N_DIGITS: usize = 64;

/// Largest original. Attaching an image has a lower limit.
const MAX_BYTES: u64 = 256 << 20;

/// Table of a backup's originals. The database itself has none.
const CREATE: &str = "CREATE TABLE IF NOT EXISTS image_original (sha256 TEXT PRIMARY KEY NOT NULL, bytes BLOB NOT NULL) STRICT";

/// The folder of the originals.
#[derive(Clone)]
pub struct ImageStore<'a> {
    folder: PathBuf,
    io: &'a dyn Io,
}

/// Where a data folder has its originals.
pub fn image_folder(data: &Path) -> PathBuf {
    data.join(FOLDER)
}

impl<'a> ImageStore<'a> {
    /// The originals of a data folder, which may have none.
    pub fn new(data: &Path, io: &'a dyn Io) -> Self {
        Self { folder: image_folder(data), io }
    }

    /// Stores an original, unless it is here.
    ///
    /// Errors: the bytes have another hash.
    pub fn put(&self, sha256: &str, bytes: &[u8]) -> Result<()> {
        if hash(bytes) != sha256 {
            return Err(SessionError::new(
                "session.image_hash",
                format!("The image {sha256} is damaged: its bytes have another SHA-256."),
                "Attach the image again, or use another copy of the file that it came from.",
            ));
        }
        let path = self.folder.join(sha256);
        if !self.io.exists(&path)? {
            self.io.create_dir_all(&self.folder)?;
            self.io.write_atomic(&path, bytes)?;
        }
        Ok(())
    }

    /// An original. None: it is not here, or the name is no hash.
    pub fn read(&self, sha256: &str) -> Result<Option<Vec<u8>>> {
        let path = self.folder.join(sha256);
        if !is_hash(sha256) || !self.io.exists(&path)? {
            return Ok(None);
        }
        Ok(Some(self.io.read_within(&path, MAX_BYTES)?))
    }

    /// Whether an original is here.
    pub fn has(&self, sha256: &str) -> Result<bool> {
        Ok(is_hash(sha256) && self.io.exists(&self.folder.join(sha256))?)
    }

    /// Removes the originals that are not in use.
    pub fn keep_only(&self, used: &HashSet<String>) -> Result<()> {
        if self.io.exists(&self.folder)? {
            for path in self.io.list(&self.folder)? {
                if !used.contains(&name(&path)) {
                    self.io.remove_file(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Hashes of the originals that are here, sorted.
    fn hashes(&self) -> Result<Vec<String>> {
        if !self.io.exists(&self.folder)? {
            return Ok(Vec::new());
        }
        let mut hashes: Vec<_> = self.io.list(&self.folder)?.iter().map(|path| name(path)).collect();
        hashes.retain(|name| is_hash(name));
        hashes.sort();
        Ok(hashes)
    }

    /// Copies every original into a backup.
    pub(crate) fn copy_into(&self, backup: &mut Connection) -> Result<()> {
        let hashes = self.hashes()?;
        if hashes.is_empty() {
            return Ok(());
        }
        let transaction = backup.transaction()?;
        transaction.execute_batch(CREATE)?;
        for sha256 in hashes {
            // Another process may just have removed it.
            if let Some(bytes) = self.read(&sha256)? {
                let sql = "INSERT OR IGNORE INTO image_original (sha256, bytes) VALUES (?1, ?2)";
                transaction.prepare_cached(sql)?.execute((&sha256, &bytes))?;
            }
        }
        Ok(transaction.commit()?)
    }

    /// Moves the originals of a backup, which is a private copy, into the folder: the copy no longer has them. Returns
    /// the number of those that are damaged.
    pub(crate) fn take_from(&self, copy: &Path) -> Result<usize> {
        let backup = Connection::open(copy)?;
        backup.pragma_update(None, "trusted_schema", false)?;
        let sql =
            "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'image_original')";
        if !backup.query_row(sql, [], |row| row.get::<_, bool>(0))? {
            return Ok(0);
        }
        let mut n_damaged = 0;
        {
            let mut statement = backup.prepare("SELECT sha256, bytes FROM image_original")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (sha256, bytes) = (row.get::<_, String>(0)?, row.get_ref(1)?.as_blob());
                match bytes.ok().filter(|bytes| hash(bytes) == sha256) {
                    Some(bytes) => self.put(&sha256, bytes)?,
                    None => n_damaged += 1,
                }
            }
        }
        backup.execute_batch("DROP TABLE image_original; VACUUM")?;
        Ok(n_damaged)
    }
}

impl Session {
    /// The originals of this data folder.
    pub fn images<'a>(&self, io: &'a dyn Io) -> ImageStore<'a> {
        ImageStore::new(&self.folder, io)
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Such as file names of originals: nothing that leads out of the folder.
fn is_hash(name: &str) -> bool {
    name.len() == N_DIGITS && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use io::RealIo;

    use super::*;

    /// SHA-256 of "abc", from FIPS 180-2.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn only_bytes_of_their_hash_are_stored() {
        let data = std::env::temp_dir().join(format!("inglenook-images-{}", std::process::id()));
        let store = ImageStore::new(&data, &RealIo);
        assert_eq!(store.read(ABC).unwrap(), None);
        assert_eq!(store.put(ABC, b"abd").unwrap_err().code(), "session.image_hash");
        assert!(!store.has(ABC).unwrap());
        store.put(ABC, b"abc").unwrap();
        assert_eq!(store.read(ABC).unwrap().as_deref(), Some(&b"abc"[..]));
        assert_eq!(store.read("../images").unwrap(), None);
        store.keep_only(&HashSet::from([ABC.to_owned()])).unwrap();
        assert!(store.has(ABC).unwrap());
        store.keep_only(&HashSet::new()).unwrap();
        assert!(!store.has(ABC).unwrap());
        std::fs::remove_dir_all(&data).unwrap();
    }
}
