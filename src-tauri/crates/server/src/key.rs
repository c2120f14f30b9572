//! The API key: random, created once, and readable only by the owner of the data folder.

use std::path::Path;

use app::{check_key, new_key};
use contract::Result;
use io::{Io, RealIo};

/// Of the file that holds one; no key comes near it.
const MAX_KEY_FILE_BYTES: u64 = 64 << 10;

/// Validates a key from the command line.
pub fn check(key: String) -> Result<String> {
    check_key(&key)?;
    Ok(key)
}

/// The key in the data folder. `None`: no server has made one yet.
pub fn stored_key(data: &Path) -> Result<Option<String>> {
    let path = data.join("keys").join("server.key");
    if !RealIo.exists(&path)? {
        return Ok(None);
    }
    let bytes = RealIo.read_within(&path, MAX_KEY_FILE_BYTES)?;
    Ok(check(String::from_utf8_lossy(&bytes).trim().to_owned()).ok())
}

/// Reads the key from the data folder, or creates it.
pub fn load_or_create(data: &Path) -> Result<String> {
    match stored_key(data)? {
        Some(key) => Ok(key),
        None => renew(data),
    }
}

/// Replaces the key in the data folder. A running server keeps the old one until it starts again.
pub fn renew(data: &Path) -> Result<String> {
    let folder = data.join("keys");
    let path = folder.join("server.key");
    RealIo.create_dir_all(&folder)?;
    // Restrict the folder before the file exists, so that no other user can ever open it.
    restrict(&folder, 0o700)?;
    let key = new_key()?;
    RealIo.write_atomic(&path, key.as_bytes())?;
    restrict(&path, 0o600)?;
    Ok(key)
}

#[cfg(unix)]
fn restrict(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let set = std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode));
    set.map_err(|error| io::IoError::new("restrict", path, error).into())
}

#[cfg(not(unix))]
fn restrict(_path: &Path, _mode: u32) -> Result<()> {
    // On Windows the profile folder is already private.
    Ok(())
}

/// Compares two keys in constant time.
pub fn is_equal(given: &[u8], kept: &[u8]) -> bool {
    let mut difference = given.len() ^ kept.len();
    for (index, byte) in kept.iter().enumerate() {
        let other = given.get(index).copied().unwrap_or(0);
        difference |= usize::from(std::hint::black_box(byte ^ other));
    }
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f64_keys_compare() {
        let cases: [(&[u8], &[u8], bool); 6] = [
            (b"abcdefgh", b"abcdefgh", true),
            (b"abcdefgx", b"abcdefgh", false),
            (b"abcdefg", b"abcdefgh", false),
            (b"abcdefghi", b"abcdefgh", false),
            (b"", b"abcdefgh", false),
            (b"abcdefg\0", b"abcdefg", false),
        ];
        for (given, kept, expected) in cases {
            assert_eq!(is_equal(given, kept), expected, "{given:?}");
        }
    }

    #[test]
    fn a_key_is_made_once_and_is_its_owners() {
        let folder = std::env::temp_dir().join(format!("inglenook-key-{}", std::process::id()));
        let first = load_or_create(&folder).unwrap();
        assert_eq!(first.len(), 64);
        assert_eq!(load_or_create(&folder).unwrap(), first);
        let second = renew(&folder).unwrap();
        assert_ne!(second, first);
        assert_eq!(stored_key(&folder).unwrap(), Some(second));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(folder.join("keys/server.key")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(check("abc".into()).is_err() && check(" abcd".into()).is_err());
        assert!(check("with spaces in it".into()).is_ok());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
