//! Names of pieces: a hash of which model, precision and kernels, and of every token up to a piece's end. Who has the
//! same tokens has the same names, whatever conversation they belong to.

use std::fmt;

use sha2::{Digest, Sha256};

use super::super::CHECKPOINT_CHUNK_TOKENS;
use super::super::requantize::Requantized;
use super::{CheckpointIdentity, FORMAT_VERSION};
use crate::TokenId;

/// The first half of a SHA-256: nobody finds two texts of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkKey([u8; 16]);

impl ChunkKey {
    fn of(hash: Sha256) -> Self {
        Self(*hash.finalize().first_chunk().expect("SHA-256 has 32 bytes"))
    }

    /// Of no tokens.
    pub(super) fn root(identity: &CheckpointIdentity) -> Self {
        // what a page takes once it has aged follows from the rest
        let CheckpointIdentity { model, spec, backends, kv, bytes } = identity;
        let bytes = [bytes.page, bytes.window_page, bytes.state];
        let mut hash = Sha256::new();
        for word in [FORMAT_VERSION, *model, *spec, *backends, *kv].into_iter().chain(bytes) {
            hash.update(word.to_le_bytes());
        }
        Self::of(hash)
    }

    /// Of this one's tokens and some more, which `saw` so much that had aged: none of it where nothing had.
    fn then(self, what: &[u8], saw: &[u8], tokens: &[TokenId]) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(what);
        if !saw.is_empty() {
            hash.update(b" after what aged");
            hash.update((saw.len() as u64).to_le_bytes());
            hash.update(saw);
        }
        tokens.iter().for_each(|token| hash.update(token.to_le_bytes()));
        Self::of(hash)
    }

    /// The head that ends with `tail` after this one's tokens. `aged` says all of how far the sequence has aged; none of
    /// it where it is exact.
    pub(super) fn head(self, aged: &[u8], tail: &[TokenId]) -> Self {
        self.then(b"head", aged, tail)
    }

    /// The same stretch as this one's last, once it has aged.
    pub(super) fn aged(self) -> Self {
        self.then(b"aged", &[], &[])
    }

    pub(super) fn words(self) -> [u64; 2] {
        let (a, b) = self.0.split_at(8);
        [a, b].map(|half| u64::from_le_bytes(half.try_into().expect("halves of 8 bytes")))
    }

    pub(super) fn of_words([a, b]: [u64; 2]) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&a.to_le_bytes());
        bytes[8..].copy_from_slice(&b.to_le_bytes());
        Self(bytes)
    }
}

impl fmt::Display for ChunkKey {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Keys of 0, 1, 2 … whole stretches of `tokens`, with what those saw that had aged.
pub(super) fn chain(identity: &CheckpointIdentity, tokens: &[TokenId], aged: &Requantized) -> Vec<ChunkKey> {
    let mut keys = vec![ChunkKey::root(identity)];
    for (index, stretch) in tokens.chunks_exact(CHECKPOINT_CHUNK_TOKENS).enumerate() {
        let saw = aged.views_within(index * CHECKPOINT_CHUNK_TOKENS, (index + 1) * CHECKPOINT_CHUNK_TOKENS);
        keys.push(keys[keys.len() - 1].then(b"stretch", &saw, stretch));
    }
    keys
}
