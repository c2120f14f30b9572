//! The files of a repository at one commit.

use serde_json::Value;

use crate::address::{Repository, is_commit};
use crate::client::Client;
use crate::error::{HubError, Result};
use crate::http_error::RequestError;
use crate::search::RepositoryInfo;
use crate::sha::Hash;

/// Pages of a file list that are read; no model repository needs more.
const MAX_PAGES: usize = 50;

/// A file on the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    /// Path in the repository.
    pub path: String,
    /// Length in bytes.
    pub bytes: u64,
    /// Hash; the hub publishes it for large files only.
    pub sha256: Option<Hash>,
}

/// Files of a repository at one revision.
#[derive(Debug, Clone)]
pub struct RepositoryTree {
    /// Facts about the repository.
    pub found: RepositoryInfo,
    /// Commit, or the requested revision if the hub does not name the commit.
    pub revision: String,
    /// All files.
    pub files: Vec<RemoteFile>,
}

impl Client {
    /// Lists all files at a revision; None is the newest.
    pub async fn tree(&self, repository: &Repository, revision: Option<&str>) -> Result<RepositoryTree> {
        let found = self.repository_info(repository, revision).await?;
        let revision = found.commit.clone().unwrap_or_else(|| revision.unwrap_or("main").to_owned());
        let Repository { owner, name } = repository;
        let mut url = self.hub.join(&["api", "models", owner, name, "tree", &revision]);
        url.query_pairs_mut().append_pair("recursive", "true");
        let (mut files, mut next) = (Vec::new(), Some(url));
        for _ in 0..MAX_PAGES {
            let Some(url) = next.take() else { break };
            let (value, following) = self.json(&url, Some(repository)).await?;
            let Value::Array(rows) = value else {
                return Err(HubError::bad_response(
                    &self.host(),
                    format!("no list of the files of {repository}"),
                ));
            };
            files.extend(rows.iter().filter_map(file));
            next = following;
        }
        debug_assert!(is_commit(&revision) || found.commit.is_none());
        Ok(RepositoryTree { found, revision, files })
    }
}

impl Client {
    /// A small file of a repository.
    pub(crate) async fn raw(&self, repository: &Repository, revision: &str, path: &str) -> Result<Vec<u8>> {
        let Repository { owner, name } = repository;
        let url = self.hub.join(&[owner, name, "resolve", revision, path]);
        let (bytes, _) = self.bytes(&url, Some(repository)).await.map_err(RequestError::into_error)?;
        Ok(bytes)
    }
}

/// Parses a file entry; None for a folder or an unreadable entry.
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
