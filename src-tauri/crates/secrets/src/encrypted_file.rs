//! Keys encrypted in the data folder, each under its owner's name: where no keychain runs (servers,
//! bare terminals), or by the user's choice. Protects against a key in the database, a backup, an
//! export or a log, and against a leaked encrypted file without the key file. Doesn't protect
//! against anyone who can read all of this user's files: both halves lie in one private folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use io::Io;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use super::Secret;
use contract::{Error, ErrorKind, Result};

/// The files in the folder of keys.
const SEALED: &str = "endpoints.sealed";
const SEAL: &str = "seal.key";

/// Of the seal.
const SEAL_BYTES: usize = 32;

/// What a sealed file begins with: its format's name, which the seal covers too.
const MAGIC: &[u8; 8] = b"NOOKKEY1";

/// The kept keys.
pub struct EncryptedKeyFile {
    folder: PathBuf,
    io: Arc<dyn Io>,
}

type StoredKeys = BTreeMap<String, Zeroizing<String>>;

impl EncryptedKeyFile {
    pub fn new(data: &Path, io: Arc<dyn Io>) -> Self {
        Self { folder: data.join("keys"), io }
    }

    /// None: there is none of that name.
    pub fn get(&self, name: &str) -> Result<Option<Secret>> {
        Ok(self.read()?.remove(name).map(Secret))
    }

    /// A file that can't be opened is set aside, never overwritten.
    pub fn put(&self, name: &str, key: &str) -> Result<()> {
        let mut kept = match self.read() {
            Ok(kept) => kept,
            Err(error) if error.code() == "keys.unreadable" => {
                self.io.rename(&self.sealed(), &self.sealed().with_extension("sealed.bad"))?;
                StoredKeys::new()
            }
            Err(error) => return Err(error),
        };
        kept.insert(name.into(), Zeroizing::new(key.into()));
        self.write(&kept)
    }

    pub fn remove(&self, name: &str) -> Result<()> {
        let mut kept = self.read()?;
        match kept.remove(name) {
            Some(_) => self.write(&kept),
            None => Ok(()),
        }
    }

    fn sealed(&self) -> PathBuf {
        self.folder.join(SEALED)
    }

    fn read(&self) -> Result<StoredKeys> {
        if !self.io.exists(&self.sealed())? {
            return Ok(StoredKeys::new());
        }
        let mut bytes = self.io.read(&self.sealed())?;
        let opened = self.seal()?.and_then(|seal| open(&seal, &mut bytes));
        opened.ok_or_else(|| unreadable(&self.sealed()))
    }

    fn write(&self, kept: &StoredKeys) -> Result<()> {
        self.io.create_dir_all(&self.folder)?;
        // Before the files exist, so that other users can never open them.
        restrict(&self.folder, 0o700)?;
        let seal = match self.seal()? {
            Some(seal) => seal,
            None => self.make_seal()?,
        };
        let sealed = close(&seal, kept)?;
        self.io.write_atomic(&self.sealed(), &sealed)?;
        restrict(&self.sealed(), 0o600)
    }

    /// None: there is none, or it is not whole.
    fn seal(&self) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let path = self.folder.join(SEAL);
        if !self.io.exists(&path)? {
            return Ok(None);
        }
        let bytes = Zeroizing::new(self.io.read(&path)?);
        Ok(Some(bytes).filter(|bytes| bytes.len() == SEAL_BYTES))
    }

    fn make_seal(&self) -> Result<Zeroizing<Vec<u8>>> {
        let mut seal = Zeroizing::new(vec![0; SEAL_BYTES]);
        SystemRandom::new().fill(&mut seal).map_err(|_| no_randomness())?;
        let path = self.folder.join(SEAL);
        self.io.write_atomic(&path, &seal)?;
        restrict(&path, 0o600)?;
        Ok(seal)
    }
}

/// magic, nonce, encrypted JSON with its tag
fn close(seal: &[u8], kept: &StoredKeys) -> Result<Vec<u8>> {
    let plain: BTreeMap<&str, &str> = kept.iter().map(|(name, key)| (name.as_str(), key.as_str())).collect();
    let mut text = Zeroizing::new(serde_json::to_vec(&plain).map_err(Error::bug)?);
    let mut nonce = [0; NONCE_LEN];
    SystemRandom::new().fill(&mut nonce).map_err(|_| no_randomness())?;
    let key = key(seal).ok_or_else(|| Error::bug("a seal of a wrong length"))?;
    let tag = key
        .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(MAGIC), &mut text)
        .map_err(|_| Error::bug("keys that are too long to be sealed"))?;
    Ok([MAGIC.as_slice(), &nonce, &text, tag.as_ref()].concat())
}

/// None: it is damaged, or was sealed by another.
fn open(seal: &[u8], bytes: &mut [u8]) -> Option<StoredKeys> {
    let (magic, rest) = bytes.split_at_mut_checked(MAGIC.len())?;
    let (nonce, sealed) = rest.split_at_mut_checked(NONCE_LEN)?;
    if magic != MAGIC {
        return None;
    }
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let text = key(seal)?.open_in_place(nonce, Aad::from(MAGIC), sealed).ok()?;
    let kept: Option<BTreeMap<String, String>> = serde_json::from_slice(text).ok();
    text.fill(0);
    Some(kept?.into_iter().map(|(name, key)| (name, Zeroizing::new(key))).collect())
}

fn key(seal: &[u8]) -> Option<LessSafeKey> {
    UnboundKey::new(&CHACHA20_POLY1305, seal).ok().map(LessSafeKey::new)
}

fn unreadable(path: &Path) -> Error {
    let message = format!(
        "The stored keys in {} can't be decrypted: the file or its master key is damaged.",
        path.display()
    );
    Error::input(
        "keys.unreadable",
        message,
        "Enter the keys of your servers again. The old file is kept next to the new one.",
    )
}

fn no_randomness() -> Error {
    let remedy = "Provide the key in an environment variable instead.";
    Error::new(ErrorKind::Device, "keys.random", "The system provided no random numbers.", remedy)
}

#[cfg(unix)]
fn restrict(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let set = std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode));
    set.map_err(|error| io::IoError::new("restrict", path, error).into())
}

#[cfg(not(unix))]
fn restrict(_path: &Path, _mode: u32) -> Result<()> {
    // The profile folder is its owner's alone there.
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use io::RealIo;

    use super::*;

    /// A folder that is removed when the test ends.
    pub struct Folder(PathBuf);

    impl Folder {
        pub fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("inglenook-keys-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&folder);
            Self(folder)
        }

        pub fn path(&self) -> &std::path::Path {
            &self.0
        }

        fn keys(&self) -> EncryptedKeyFile {
            EncryptedKeyFile::new(&self.0, Arc::new(RealIo))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn keys_are_kept_and_lie_nowhere_in_clear() {
        let folder = Folder::new("kept");
        assert_eq!(folder.keys().get("a").unwrap(), None);
        folder.keys().put("a", "sk-canary-1").unwrap();
        folder.keys().put("b", "sk-canary-2").unwrap();
        let got = |name: &str| folder.keys().get(name).unwrap().map(|key| key.reveal().to_owned());
        assert_eq!((got("a").as_deref(), got("b").as_deref()), (Some("sk-canary-1"), Some("sk-canary-2")));
        for entry in std::fs::read_dir(folder.0.join("keys")).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            assert!(!bytes.windows(9).any(|window| window == b"sk-canary"), "{}", path.display());
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                let mode = std::fs::metadata(&path).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600, "{}", path.display());
            }
        }
        folder.keys().remove("a").unwrap();
        folder.keys().remove("a").unwrap();
        assert_eq!((got("a"), got("b").as_deref()), (None, Some("sk-canary-2")));
        assert_eq!(format!("{:?}", folder.keys().get("b").unwrap()), "Some(Secret)");
    }

    #[test]
    fn damage_is_said_and_nothing_is_thrown_away() {
        let folder = Folder::new("damaged");
        folder.keys().put("a", "sk-1").unwrap();
        let path = folder.0.join("keys").join(SEALED);
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            assert_eq!(folder.keys().get("a").unwrap_err().code(), "keys.unreadable", "byte {at}");
            std::fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(folder.keys().get("a").unwrap_err().code(), "keys.unreadable", "cut at {at}");
        }
        folder.keys().put("b", "sk-2").unwrap();
        assert!(folder.keys().get("b").unwrap().is_some());
        assert!(path.with_extension("sealed.bad").exists());
    }
}
