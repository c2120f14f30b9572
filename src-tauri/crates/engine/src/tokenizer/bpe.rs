//! Byte-pair encoding: pieces of text to tokens by ranked merges.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::TokenId;
use super::merge::{NONE, Scratch};
use super::vocab::{Vocab, mix};

/// The merges of a model and what happens to text that no token covers.
#[derive(Debug)]
pub struct Bpe {
    /// Two neighbours → rank and the token they become.
    merges: HashMap<(TokenId, TokenId), (u32, TokenId), BuildHasherDefault<PairHasher>>,
    pub options: BpeOptions,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct BpeOptions {
    /// A piece that is a token as a whole is taken as it is.
    pub ignore_merges: bool,
    /// A character without a token becomes byte tokens.
    pub byte_fallback: bool,
    /// What stands for a character without a token; absent: nothing.
    pub unknown: Option<TokenId>,
    /// Several unknown characters in a row become one token.
    pub fuse_unknown: bool,
}

impl Bpe {
    /// `merges`: left and right text, best first. A merge whose texts (or their sum) are no tokens can never
    /// happen and is left out.
    pub fn new<'a>(
        vocab: &Vocab,
        merges: impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])>,
        options: BpeOptions,
    ) -> Self {
        let mut map = HashMap::with_capacity_and_hasher(merges.len(), BuildHasherDefault::default());
        let mut whole = Vec::new();
        for (rank, (left, right)) in (0..).zip(merges) {
            whole.clear();
            whole.extend_from_slice(left);
            whole.extend_from_slice(right);
            let ids = (vocab.find(left), vocab.find(right), vocab.find(&whole));
            if let (Some(left), Some(right), Some(whole)) = ids {
                map.entry((left, right)).or_insert((rank, whole));
            }
        }
        Self { merges: map, options }
    }

    /// Appends the tokens of one piece.
    pub fn encode(&self, vocab: &Vocab, piece: &str, scratch: &mut Scratch, out: &mut Vec<TokenId>) {
        if self.options.ignore_merges
            && let Some(id) = vocab.find(piece.as_bytes())
        {
            return out.push(id);
        }
        scratch.clear();
        for (start, c) in piece.char_indices() {
            let end = start + c.len_utf8();
            let id = vocab.find(&piece.as_bytes()[start..end]).unwrap_or(NONE);
            scratch.push(start as u32, end as u32, id);
        }
        scratch.merge(|left, right| match (left.id, right.id) {
            (NONE, _) | (_, NONE) => None,
            pair => self.merges.get(&pair).copied(),
        });
        let mut after_unknown = false;
        for symbol in scratch.symbols() {
            if symbol.id != NONE {
                out.push(symbol.id);
                after_unknown = false;
                continue;
            }
            let bytes = &piece.as_bytes()[symbol.start as usize..symbol.end as usize];
            match (vocab.byte_ids(), self.options.unknown) {
                (Some(ids), _) if self.options.byte_fallback => {
                    out.extend(bytes.iter().map(|b| ids[*b as usize]))
                }
                (_, Some(unknown)) => {
                    if !(after_unknown && self.options.fuse_unknown) {
                        out.push(unknown);
                    }
                    after_unknown = true;
                }
                (_, None) => {}
            }
        }
    }
}

/// Mixes two ids; ids come from a file, and a collision only costs time.
#[derive(Debug, Default)]
pub struct PairHasher(u64);

impl Hasher for PairHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.0 = mix(self.0, u64::from(*b)));
    }

    fn write_u32(&mut self, word: u32) {
        self.0 = mix(self.0, u64::from(word));
    }

    fn write_u8(&mut self, byte: u8) {
        self.0 = mix(self.0, u64::from(byte));
    }
}
