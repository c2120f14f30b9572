//! The files of a repository at one commit.

use serde_json::Value;

use crate::address::Repository;
use crate::client::Client;
use crate::error::{HubError, Result};
use crate::http_error::Refused;
use crate::search::{Found, is_commit};
use crate::sha::Hash;
use crate::signature::{MANIFEST, Manifest, SIGNATURE_ENDING, TrustedKeys};

/// Pages of a list that are read: no repository of a model has more files than on so many.
const MOST_PAGES: usize = 50;

/// A file on the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    pub path: String,
    pub bytes: u64,
    /// The hub publishes it of large files only.
    pub sha256: Option<Hash>,
}

#[derive(Debug, Clone)]
pub struct Tree {
    pub found: Found,
    /// The commit, or what was asked for where the hub doesn't name it.
    pub revision: String,
    pub files: Vec<RemoteFile>,
}

impl Client {
    /// All files. `revision`: None is the newest.
    pub async fn tree(&self, repository: &Repository, revision: Option<&str>) -> Result<Tree> {
        let found = self.found(repository, revision).await?;
        let revision = found.commit.clone().unwrap_or_else(|| revision.unwrap_or("main").to_owned());
        let Repository { owner, name } = repository;
        let mut url = self.url(&["api", "models", owner, name, "tree", &revision]);
        url.query_pairs_mut().append_pair("recursive", "true");
        let (mut files, mut next) = (Vec::new(), Some(url));
        for _ in 0..MOST_PAGES {
            let Some(url) = next.take() else { break };
            let (value, following) = self.json(&url, Some(repository)).await?;
            let Value::Array(rows) = value else {
                return Err(HubError::answer(&self.host(), format!("no list of the files of {repository}")));
            };
            files.extend(rows.iter().filter_map(file));
            next = following;
        }
        debug_assert!(is_commit(&revision) || found.commit.is_none());
        Ok(Tree { found, revision, files })
    }
}

impl Client {
    /// The signed list of a repository's files, and who signed it. None: there is none, or nobody trusted signed it.
    /// Errors: a signature that doesn't hold, a list that can't be read.
    pub async fn manifest(
        &self,
        repository: &Repository,
        tree: &Tree,
        keys: &TrustedKeys,
    ) -> Result<Option<(Manifest, String)>> {
        let signature = format!("{MANIFEST}{SIGNATURE_ENDING}");
        let has = |path: &str| tree.files.iter().any(|file| file.path == path);
        if keys.is_empty() || !has(MANIFEST) || !has(&signature) {
            return Ok(None);
        }
        let bytes = self.raw(repository, &tree.revision, MANIFEST).await?;
        let signature = self.raw(repository, &tree.revision, &signature).await?;
        let signature = String::from_utf8_lossy(&signature);
        let Some(signer) = keys.signer(&bytes, &signature, &format!("the list of {repository}"))? else {
            return Ok(None);
        };
        Ok(Some((Manifest::parse(&bytes)?, signer)))
    }

    /// A small file of a repository.
    async fn raw(&self, repository: &Repository, revision: &str, path: &str) -> Result<Vec<u8>> {
        let Repository { owner, name } = repository;
        let url = self.url(&[owner, name, "resolve", revision, path]);
        let (bytes, _) = self.bytes(&url, Some(repository)).await.map_err(Refused::into_error)?;
        Ok(bytes)
    }
}

/// None: a folder, or something that can't be read.
fn file(row: &Value) -> Option<RemoteFile> {
    if row["type"].as_str() != Some("file") {
        return None;
    }
    let lfs = &row["lfs"];
    let hash = lfs["oid"].as_str().map(|oid| oid.strip_prefix("sha256:").unwrap_or(oid));
    Some(RemoteFile {
        path: row["path"].as_str()?.to_owned(),
        bytes: lfs["size"].as_u64().or_else(|| row["size"].as_u64())?,
        sha256: hash.and_then(Hash::parse),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_size_is_the_files_not_the_pointers() {
        let oid = "ab".repeat(32);
        let row = json!({"type": "file", "path": "a.gguf", "size": 134, "oid": "x", "lfs": {"oid": oid, "size": 9_000}});
        let read = file(&row).unwrap();
        assert_eq!((read.bytes, read.sha256.map(|hash| hash.to_string())), (9_000, Some(oid)));
        let small = file(&json!({"type": "file", "path": "config.json", "size": 7, "oid": "x"})).unwrap();
        assert_eq!((small.bytes, small.sha256), (7, None));
        assert_eq!(file(&json!({"type": "directory", "path": "sub"})), None);
        assert_eq!(file(&json!({"type": "file", "path": "a"})), None);
    }
}
