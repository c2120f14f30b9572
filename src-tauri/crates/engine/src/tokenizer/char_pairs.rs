//! Which characters stand side by side inside some token: between two that never do, no token reaches, and both
//! sides can be encoded alone.

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

    /// Places inside `text` between which its parts can be encoded alone, in order.
    pub fn cuts<'a>(&'a self, vocab: &'a Vocab, text: &'a str) -> impl Iterator<Item = usize> + 'a {
        let pairs = text.char_indices().zip(text.char_indices().skip(1));
        pairs.filter(|((_, a), (_, b))| self.are_strangers(vocab, *a, *b)).map(|(_, (at, _))| at)
    }

    /// No token holds the one before the other, and both have tokens or bytes: unknown ones in a row become one.
    fn are_strangers(&self, vocab: &Vocab, a: char, b: char) -> bool {
        let [a, b] = [a, b].map(space_to_mark);
        let is_known = |c: char| {
            vocab.byte_ids().is_some() || vocab.find(c.encode_utf8(&mut [0; 4]).as_bytes()).is_some()
        };
        // Line ends are split off by some vocabularies' rules, a run of them as one.
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
