//! The API key: random, created once, and readable only by the owner of the data folder.

use std::path::Path;

use contract::Error;
use contract::Result;
use io::{Io, RealIo};
use rand::RngCore;

/// Random bytes of a key; 256 bits can't be guessed.
const KEY_BYTES: usize = 32;

/// Shortest key that a user may choose.
const MIN_CHARS: usize = 8;

/// Of the file that holds one; no key comes near it.
const MAX_KEY_FILE_BYTES: u64 = 64 << 10;

/// Validates a key from the command line.
pub fn check(key: String) -> Result<String> {
    let is_fine = key.len() >= MIN_CHARS && key.bytes().all(|byte| byte.is_ascii_graphic());
    if is_fine {
        return Ok(key);
    }
    Err(Error::input(
        "server.key",
        format!("A key needs at least {MIN_CHARS} printable ASCII characters without spaces."),
        "Choose a longer key, or omit --api-key to generate one.",
    ))
}

/// Reads the key from the data folder, or creates it.
pub fn load_or_create(data: &Path) -> Result<String> {
    let folder = data.join("keys");
    let path = folder.join("server.key");
    if RealIo.exists(&path)? {
        let bytes = RealIo.read_within(&path, MAX_KEY_FILE_BYTES)?;
        if let Ok(key) = check(String::from_utf8_lossy(&bytes).trim().to_owned()) {
            return Ok(key);
        }
    }
    RealIo.create_dir_all(&folder)?;
    // Restrict the folder before the file exists, so that no other user can ever open it.
    restrict(&folder, 0o700)?;
    let key = new_key();
    RealIo.write_atomic(&path, key.as_bytes())?;
    restrict(&path, 0o600)?;
    Ok(key)
}

fn new_key() -> String {
    let mut bytes = [0_u8; KEY_BYTES];
    rand::rng().fill_bytes(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
    fn keys_compare() {
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
        assert_eq!(first.len(), 2 * KEY_BYTES);
        assert_eq!(load_or_create(&folder).unwrap(), first);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(folder.join("keys/server.key")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(check("short".into()).is_err());
        assert!(check("with spaces in it".into()).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
