//! Keys of other programs: named, limited in scope and rate, revocable. The data folder holds only their hashes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contract::{Error, ErrorKind, Result};
use io::{Clock, FileLock, Io};
use serde::{Deserialize, Serialize};

use crate::key_hash::{KeyHash, hashed_now, hex, random_bytes};
use crate::key_usage::{KeyLimits, KeyUsages};

/// Shortest key.
const MIN_KEY_CHARS: usize = 4;

/// Longest key, and longest name of one.
const MAX_KEY_BYTES: usize = 1024;
const MAX_NAME_CHARS: usize = 64;

/// Most keys: each wrong key is compared with all of them.
const MAX_KEYS: usize = 100;

/// Random bytes of a generated key; 256 bits can't be guessed.
const KEY_BYTES: usize = 32;

/// Keys that were verified lately and need no slow hash again.
const MAX_VERIFIED: usize = 256;

const FOLDER: &str = "keys";
const FILE: &str = "api_keys.json";
const LOCK: &str = "api_keys.lock";

/// What a key permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyScope {
    /// Answers, vectors and token counts; the list of models.
    Chat,
    /// Adding and removing models.
    Models,
    /// Everything, including the conversations of the user.
    Admin,
}

/// The key of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerKey {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// A key as the data folder keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredKey {
    id: String,
    name: String,
    hash: KeyHash,
    scopes: Vec<KeyScope>,
    #[serde(default)]
    limits: KeyLimits,
    created_ms: i64,
}

/// A key without its secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApiKeyInfo {
    pub id: String,
    pub name: String,
    pub scopes: Vec<KeyScope>,
    pub limits: KeyLimits,
    pub created_ms: i64,
}

/// A key to add.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ApiKeyArgs {
    pub name: String,
    /// None: a random one.
    pub key: Option<String>,
    /// Empty: `Chat`.
    pub scopes: Vec<KeyScope>,
    pub limits: KeyLimits,
}

/// A key that was just added, with its secret, which is shown only now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NewApiKey {
    pub key: String,
    #[serde(flatten)]
    pub info: ApiKeyInfo,
}

/// A key that a request carries.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedKey {
    pub caller: CallerKey,
    pub scopes: Vec<KeyScope>,
    pub limits: KeyLimits,
}

/// Checks the form of a key: printable text of at least 4 characters.
pub fn check_key(key: &str) -> Result<()> {
    let is_fine = key.chars().count() >= MIN_KEY_CHARS
        && key.len() <= MAX_KEY_BYTES
        && key.trim() == key
        && !key.chars().any(char::is_control);
    if is_fine {
        return Ok(());
    }
    Err(Error::input(
        "server.key",
        format!("A key needs at least {MIN_KEY_CHARS} printable characters, and no space at its ends."),
        "Choose a longer key, or leave it out to have one generated.",
    ))
}

/// A random key.
pub fn new_key() -> Result<String> {
    Ok(hex(&random_bytes::<KEY_BYTES>()?))
}

/// The file: the keys, and the SHA-256 of their JSON, by which a changed letter is noticed.
#[derive(Serialize, Deserialize)]
struct KeyFile {
    keys: serde_json::Value,
    sha256: String,
}

fn written(keys: &[StoredKey]) -> serde_json::Result<Vec<u8>> {
    let keys = serde_json::to_value(keys)?;
    let sha256 = documents::sha256(keys.to_string());
    serde_json::to_vec_pretty(&KeyFile { keys, sha256 })
}

/// Reads the file; also a bare list, as earlier versions wrote it.
fn parse(bytes: &[u8]) -> std::result::Result<Vec<StoredKey>, String> {
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let keys = match value {
        keys @ serde_json::Value::Array(_) => keys,
        other => {
            let KeyFile { keys, sha256 } =
                serde_json::from_value(other).map_err(|error| error.to_string())?;
            if documents::sha256(keys.to_string()) != sha256 {
                return Err("its content does not match its hash".into());
            }
            keys
        }
    };
    serde_json::from_value(keys).map_err(|error| error.to_string())
}

/// The keys of a data folder. The file is read with each request: another process may have changed it.
pub struct ApiKeys {
    folder: PathBuf,
    io: Arc<dyn Io>,
    /// Fast hashes of keys that were verified, with the slow hash that they fit.
    verified: Mutex<Vec<(String, KeyHash)>>,
    /// What the keys have used.
    pub usages: KeyUsages,
}

impl ApiKeys {
    /// The keys of the data folder `data`.
    pub fn new(data: &std::path::Path, io: Arc<dyn Io>, clock: Arc<dyn Clock>) -> Self {
        let folder = data.join(FOLDER);
        let usages = KeyUsages::new(folder.clone(), Arc::clone(&io), clock);
        Self { folder, io, verified: Mutex::default(), usages }
    }

    fn read(&self) -> Result<Vec<StoredKey>> {
        let path = self.folder.join(FILE);
        if !self.io.exists(&path)? {
            return Ok(Vec::new());
        }
        parse(&self.io.read(&path)?).map_err(|cause| {
            Error::input(
                "keys.unreadable",
                format!("{} is damaged: {cause}.", path.display()),
                "Remove the file and add the keys again (nook keys add).",
            )
        })
    }

    /// Changes the list while no other process does.
    fn change<T>(&self, change: impl FnOnce(&mut Vec<StoredKey>) -> Result<T>) -> Result<T> {
        self.io.create_dir_all(&self.folder)?;
        let Some(_lock) = FileLock::try_acquire(&self.folder.join(LOCK))? else {
            let message = "Another process is changing the keys.";
            return Err(Error::new(ErrorKind::Conflict, "keys.locked", message, "Try again."));
        };
        let mut keys = self.read()?;
        let changed = change(&mut keys)?;
        let json = written(&keys).map_err(|error| Error::bug(format!("the keys: {error}")))?;
        self.io.write_atomic(&self.folder.join(FILE), &json)?;
        Ok(changed)
    }

    fn verified(&self) -> MutexGuard<'_, Vec<(String, KeyHash)>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key of a request. None: there is no such key.
    pub fn verify(&self, key: &str) -> Result<Option<VerifiedKey>> {
        let keys = self.read()?;
        let fast = documents::sha256(key);
        let known = self.verified().iter().find(|(other, _)| *other == fast).map(|(_, hash)| hash.clone());
        let found = match known {
            Some(hash) => keys.into_iter().find(|stored| stored.hash == hash),
            None => keys.into_iter().find(|stored| stored.hash.fits(key)),
        };
        Ok(found.map(|stored| {
            let mut verified = self.verified();
            if !verified.iter().any(|(other, _)| *other == fast) {
                if verified.len() >= MAX_VERIFIED {
                    verified.remove(0);
                }
                verified.push((fast, stored.hash));
            }
            VerifiedKey {
                caller: CallerKey { id: stored.id, name: stored.name },
                scopes: stored.scopes,
                limits: stored.limits,
            }
        }))
    }

    /// In the order in which they were added.
    pub fn list(&self) -> Result<Vec<ApiKeyInfo>> {
        Ok(self.read()?.into_iter().map(StoredKey::info).collect())
    }

    /// Adds a key under an id and tells it, this once.
    pub fn add(&self, args: ApiKeyArgs, id: String, created_ms: i64) -> Result<NewApiKey> {
        let name = args.name.trim().to_owned();
        if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
            let message = format!("The name of a key needs 1 to {MAX_NAME_CHARS} characters.");
            return Err(Error::input("keys.name", message, "Name it after the program that uses it."));
        }
        let key = args.key.map_or_else(new_key, Ok)?;
        check_key(&key)?;
        let mut scopes = if args.scopes.is_empty() { vec![KeyScope::Chat] } else { args.scopes };
        scopes.sort_unstable();
        scopes.dedup();
        let stored = StoredKey { id, name, hash: hashed_now(&key)?, scopes, limits: args.limits, created_ms };
        self.change(|keys| {
            if keys.iter().any(|other| other.name == stored.name) {
                let message = format!("There is a key \"{}\" already.", stored.name);
                return Err(Error::new(ErrorKind::Conflict, "keys.there", message, "Choose another name."));
            }
            if keys.iter().any(|other| other.hash.fits(&key)) {
                let message = "Another key has the same text.";
                return Err(Error::new(ErrorKind::Conflict, "keys.same", message, "Choose another key."));
            }
            if keys.len() >= MAX_KEYS {
                let message = format!("There are {MAX_KEYS} keys, which is the limit.");
                return Err(Error::new(ErrorKind::Limit, "keys.many", message, "Revoke one first."));
            }
            keys.push(stored.clone());
            Ok(())
        })?;
        Ok(NewApiKey { key, info: stored.info() })
    }

    /// Takes effect with the next request. `key`: an id or a name.
    pub fn revoke(&self, key: &str) -> Result<ApiKeyInfo> {
        self.change(|keys| {
            let at = keys.iter().position(|stored| stored.id == key || stored.name == key);
            match at {
                Some(at) => Ok(keys.remove(at).info()),
                None => Err(Error::not_found(
                    "keys.unknown",
                    format!("There is no key \"{key}\"."),
                    "See the names in `nook keys list`.",
                )),
            }
        })
    }
}

impl StoredKey {
    fn info(self) -> ApiKeyInfo {
        let Self { id, name, scopes, limits, created_ms, .. } = self;
        ApiKeyInfo { id, name, scopes, limits, created_ms }
    }
}

#[cfg(test)]
mod tests {
    use io::{RealClock, RealIo};

    use super::*;

    #[test]
    fn keys_are_added_verified_and_revoked() {
        let folder = std::env::temp_dir().join(format!("inglenook-api-keys-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let keys = ApiKeys::new(&folder, Arc::new(RealIo), Arc::new(RealClock::new()));
        let mut n = 0;
        let mut add = |args| {
            n += 1;
            keys.add(args, format!("id-{n}"), 1)
        };
        let args = |name: &str, key: Option<&str>| ApiKeyArgs {
            name: name.into(),
            key: key.map(str::to_owned),
            ..ApiKeyArgs::default()
        };
        let made = add(args("lab", None)).unwrap();
        assert_eq!((made.key.len(), made.info.scopes.as_slice()), (2 * KEY_BYTES, &[KeyScope::Chat][..]));
        let chosen = add(args("short", Some("ключ"))).unwrap();
        let file = std::fs::read_to_string(folder.join("keys/api_keys.json")).unwrap();
        assert!(!file.contains(&made.key) && !file.contains("ключ"), "only hashes are kept");
        for (key, name) in
            [(made.key.as_str(), Some("lab")), ("ключ", Some("short")), ("ключи", None), ("", None)]
        {
            for _ in 0..2 {
                let verified = keys.verify(key).unwrap();
                assert_eq!(verified.map(|it| it.caller.name).as_deref(), name, "{key}");
            }
        }
        assert_eq!(add(args("lab", None)).unwrap_err().code(), "keys.there");
        assert_eq!(add(args("other", Some("ключ"))).unwrap_err().code(), "keys.same");
        for wrong in ["abc", " abcd", "abcd ", "ab\ncd", ""] {
            assert_eq!(add(args("x", Some(wrong))).unwrap_err().code(), "server.key", "{wrong:?}");
        }
        let path = folder.join("keys/api_keys.json");
        for (right, wrong) in [("short", "shore"), ("{", "["), ("chat", "admin")] {
            std::fs::write(&path, file.replacen(right, wrong, 1)).unwrap();
            assert_eq!(keys.list().unwrap_err().code(), "keys.unreadable", "{wrong}");
        }
        // As earlier versions wrote it.
        let value: serde_json::Value = serde_json::from_str(&file).unwrap();
        std::fs::write(&path, value["keys"].to_string()).unwrap();
        assert_eq!(keys.list().unwrap().len(), 2);
        keys.revoke("short").unwrap();
        assert_eq!(keys.verify("ключ").unwrap(), None, "also where it was verified before");
        keys.revoke(&made.info.id).unwrap();
        assert_eq!(keys.list().unwrap(), []);
        assert_eq!(keys.revoke(&chosen.info.id).unwrap_err().code(), "keys.unknown");
        let _ = std::fs::remove_dir_all(folder);
    }
}
