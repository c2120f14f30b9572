//! Names of checkpoint pieces: a hash of model, precision, kernels and every token up to the piece's end.
//!
//! Equal token prefixes have equal names, whatever conversation they belong to.

use std::fmt;

use sha2::{Digest, Sha256};

use super::super::CHECKPOINT_CHUNK_TOKENS;
use super::super::requantize::Requantized;
use super::{CheckpointIdentity, FORMAT_VERSION};
use crate::TokenId;

/// First half of a SHA-256, so that two texts never share a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkKey([u8; 16]);

impl ChunkKey {
    fn of(hash: Sha256) -> Self {
        Self(*hash.finalize().first_chunk().expect("SHA-256 has 32 bytes"))
    }

    /// Key of no tokens.
    pub(super) fn root(identity: &CheckpointIdentity) -> Self {
        // The size of a requantized page follows from the rest.
        let CheckpointIdentity { model, spec, backends, kv, bytes } = identity;
        let bytes = [bytes.page, bytes.window_page, bytes.state];
        let mut hash = Sha256::new();
        for word in [FORMAT_VERSION, *model, *spec, *backends, *kv].into_iter().chain(bytes) {
            hash.update(word.to_le_bytes());
        }
        Self::of(hash)
    }

    /// Key of this one's tokens followed by more. `saw` says what they saw of requantization, and is empty for exact
    /// ones.
    fn then(self, what: &[u8], views: &[u8], tokens: &[TokenId]) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(what);
        if !views.is_empty() {
            hash.update(b" after what aged");
            hash.update((views.len() as u64).to_le_bytes());
            hash.update(views);
        }
        tokens.iter().for_each(|token| hash.update(token.to_le_bytes()));
        Self::of(hash)
    }

    /// Key of the head with `tail` after this one's tokens. `requantized` describes the sequence's requantization, and is
    /// empty for an exact one.
    pub(super) fn head(self, requantized: &[u8], tail: &[TokenId]) -> Self {
        self.then(b"head", requantized, tail)
    }

    /// Key of the same chunk after requantization.
    pub(super) fn requantized(self) -> Self {
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

/// Keys of the first 0, 1, 2 … whole chunks of `tokens`, with what these saw of requantization.
pub(super) fn chain(
    identity: &CheckpointIdentity,
    tokens: &[TokenId],
    requantized: &Requantized,
) -> Vec<ChunkKey> {
    let mut keys = vec![ChunkKey::root(identity)];
    for (index, chunk) in tokens.chunks_exact(CHECKPOINT_CHUNK_TOKENS).enumerate() {
        let views =
            requantized.views_within(index * CHECKPOINT_CHUNK_TOKENS, (index + 1) * CHECKPOINT_CHUNK_TOKENS);
        keys.push(keys[keys.len() - 1].then(b"stretch", &views, chunk));
    }
    keys
}
