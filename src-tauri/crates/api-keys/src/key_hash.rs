//! Hashes of keys: PBKDF2 with a salt, because a user may choose a short key.

use std::num::NonZeroU32;

use contract::{Error, Result};
use ring::pbkdf2;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

/// Iterations of new hashes: some milliseconds. Verified keys are remembered, so this is paid once.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(20_000).expect("not zero");

const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

/// A hash and what it was made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyHash {
    iterations: NonZeroU32,
    /// In hexadecimal, as the hash.
    salt: String,
    hash: String,
}

/// Fills a buffer with random bytes.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0_u8; N];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(Error::bug("the system gives no random bytes")),
    }
}

/// Writes bytes in lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = hex.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
    digits.chunks(2).map(|pair| u8::try_from(pair.first()? * 16 + pair.get(1)?).ok()).collect()
}

/// Hashes a key with a new salt.
pub(crate) fn hashed_now(key: &str) -> Result<KeyHash> {
    let salt = random_bytes::<SALT_BYTES>()?;
    let mut hash = [0_u8; HASH_BYTES];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ITERATIONS, &salt, key.as_bytes(), &mut hash);
    Ok(KeyHash { iterations: ITERATIONS, salt: hex(&salt), hash: hex(&hash) })
}

impl KeyHash {
    /// Whether this is the hash of a key, in constant time. A hash that can't be read fits none.
    pub fn fits(&self, key: &str) -> bool {
        let (Some(salt), Some(hash)) = (bytes(&self.salt), bytes(&self.hash)) else {
            return false;
        };
        pbkdf2::verify(pbkdf2::PBKDF2_HMAC_SHA256, self.iterations, &salt, key.as_bytes(), &hash).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_fits_its_key_alone() {
        // RFC 7914, section 11: PBKDF2-HMAC-SHA-256 (P="passwd", S="salt", c=1), first 32 bytes.
        let hash = [
            0x55, 0xac, 0x04, 0x6e, 0x56, 0xe3, 0x08, 0x9f, 0xec, 0x16, 0x91, 0xc2, 0x25, 0x44, 0xb6, 0x05,
            0xf9, 0x41, 0x85, 0x21, 0x6d, 0xde, 0x04, 0x65, 0xe6, 0x8b, 0x9d, 0x57, 0xc2, 0x0d, 0xac, 0xbc,
        ];
        let known = KeyHash { iterations: NonZeroU32::MIN, salt: hex(b"salt"), hash: hex(&hash) };
        assert!(known.fits("passwd") && !known.fits("passwe") && !known.fits(""));
        let (one, two) = (hashed_now("key").unwrap(), hashed_now("key").unwrap());
        assert!(one.fits("key") && two.fits("key") && one != two, "each has its own salt");
        assert!(!KeyHash { salt: "?".into(), ..one }.fits("key"));
    }
}
