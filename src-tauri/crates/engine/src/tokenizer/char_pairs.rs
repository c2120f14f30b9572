//! Character pairs that occur inside tokens. No token spans two characters that never pair, so both sides can be
//! encoded separately.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use super::added::AddedTokens;
use super::pair_hash::PairHasher;
use super::vocab::{TokenKind, Vocab};

/// All pairs of a vocabulary.
#[derive(Debug)]
pub struct CharPairs {
    pairs: HashSet<(u32, u32), BuildHasherDefault<PairHasher>>,
}

impl CharPairs {
    pub fn new(vocab: &Vocab, added: &AddedTokens) -> Self {
        let mut pairs = HashSet::default();
        let mut add = |text: &str| {
            let spaced = text.chars().map(space_to_mark);
            pairs.extend(spaced.clone().zip(spaced.skip(1)).map(|(a, b)| (u32::from(a), u32::from(b))));
        };
        for (_, text, kind) in vocab.ids() {
            if let (TokenKind::Normal | TokenKind::UserDefined, Ok(text)) = (kind, std::str::from_utf8(text))
            {
                add(text);
            }
        }
        added.texts().for_each(add);
        Self { pairs }
    }

    /// Returns the offsets in `text` at which its parts can be encoded separately, in order.
    pub fn cuts<'a>(&'a self, vocab: &'a Vocab, text: &'a str) -> impl Iterator<Item = usize> + 'a {
        let pairs = text.char_indices().zip(text.char_indices().skip(1));
        pairs.filter(|((_, a), (_, b))| self.are_strangers(vocab, *a, *b)).map(|(_, (at, _))| at)
    }

    /// Returns whether no token contains the pair, and both characters are known: unknown ones in a row become one
    /// token.
    fn are_strangers(&self, vocab: &Vocab, a: char, b: char) -> bool {
        let [a, b] = [a, b].map(space_to_mark);
        let has_token = |c: char| {
            vocab.find(c.encode_utf8(&mut [0; 4]).as_bytes()).is_some_and(|id| vocab.has_finite_score(id))
        };
        let is_known = |c: char| vocab.has_byte_ids() || has_token(c);
        // Some vocabularies split off line ends, a run of them as one piece.
        a != '\n'
            && b != '\n'
            && !self.pairs.contains(&(u32::from(a), u32::from(b)))
            && is_known(a)
            && is_known(b)
    }
}

fn space_to_mark(c: char) -> char {
    if c == ' ' { '▁' } else { c }
}
