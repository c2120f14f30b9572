//! SHA-256 of chunks and files.

use io::{Io, IoError, RandomFile};
use sha2::{Digest, Sha256};

/// Bytes per read.
const BLOCK_BYTES: usize = 1 << 20;

/// A SHA-256 hash, displayed as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash([u8; 32]);

impl Hash {
    /// Hashes bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Parses 64 hexadecimal digits; None for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl std::fmt::Display for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// Hashes the first `bytes` of a file. `on` receives the bytes read so far and returns whether to continue; None if it
/// stopped.
pub(crate) fn of_file(
    file: &dyn RandomFile,
    bytes: u64,
    on: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<Hash>, IoError> {
    let mut hasher = Sha256::new();
    let mut block = vec![0; BLOCK_BYTES];
    let mut at = 0;
    while at < bytes {
        let want = usize::try_from(bytes - at).unwrap_or(usize::MAX).min(BLOCK_BYTES);
        let n = file.read_at(at, &mut block[..want])?;
        if n == 0 {
            break;
        }
        hasher.update(&block[..n]);
        at += n as u64;
        if !on(at) {
            return Ok(None);
        }
    }
    Ok(Some(Hash(hasher.finalize().into())))
}

/// Hash and length of a whole file. `on` receives bytes read and length, and returns whether to continue; None if it
/// stopped.
pub fn hash_file(
    io: &dyn Io,
    path: &std::path::Path,
    on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Option<(Hash, u64)>, IoError> {
    let bytes = io.len(path)?;
    let file = io.open_to_read(path)?;
    Ok(of_file(&*file, bytes, &mut |done| on(done, bytes))?.map(|hash| (hash, bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_written_and_read() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Hash::of(b"").to_string(), empty);
        assert_eq!(Hash::parse(&empty.to_uppercase()), Some(Hash::of(b"")));
        for wrong in ["", "e3", &empty[1..], &empty.replace('e', "g"), "../../../etc/passwd"] {
            assert_eq!(Hash::parse(wrong), None, "{wrong}");
        }
    }
}
