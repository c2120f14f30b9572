//! Byte-pair encoding by ranked merges.

use super::TokenId;
use super::merge::{MergeScratch, NONE};
use super::vocab::{TokenKind, Vocab, broken};
use crate::error::{EngineError, Result};

/// Merges of a model, and the treatment of text without tokens.
#[derive(Debug)]
pub struct Bpe {
    merges: Merges,
    pub options: BpeOptions,
}

/// Merge ranks by resulting token and length of the left part, which determine both parts. The parts need no lookup:
/// vocabularies load before the first answer, and most merges are never used.
#[derive(Debug, Default)]
struct Merges {
    /// End of each token's merges in `rows`. (n_vocab)
    ends: Vec<u32>,
    /// Bytes of the left part, and rank. Ascending per token, without duplicate left parts.
    rows: Vec<(u32, u32)>,
}

impl Merges {
    /// `found`: resulting token, bytes of the left part, rank.
    fn new(n_vocab: usize, mut found: Vec<(TokenId, u32, u32)>) -> Self {
        if !found.is_sorted() {
            found.sort_unstable();
        }
        found.dedup_by_key(|(whole, left, _)| (*whole, *left)); // the best rank comes first and stays
        let mut ends = Vec::with_capacity(n_vocab);
        let mut rows = Vec::with_capacity(found.len());
        for (whole, left, rank) in found {
            ends.resize(whole as usize, rows.len() as u32);
            rows.push((left, rank));
        }
        ends.resize(n_vocab, rows.len() as u32);
        Self { ends, rows }
    }

    fn rank(&self, whole: TokenId, left_bytes: u32) -> Option<u32> {
        let end = *self.ends.get(whole as usize)? as usize;
        let start = whole.checked_sub(1).map_or(0, |before| self.ends[before as usize] as usize);
        let rows = &self.rows[start..end];
        let at = rows.binary_search_by_key(&left_bytes, |(left, _)| *left).ok()?;
        Some(rows[at].1)
    }
}

/// Merges that are read to judge their form: those of a sound file are good from the first.
const MERGES_JUDGED: usize = 1000;

/// Checks that a vocabulary has merges, and that they are pairs of its tokens. A few bad ones are dropped later; without
/// any that can be used every text would be split into bytes, and answers would make no sense. `name` is the list's.
///
/// Errors: `tokenizer.merges_missing`, `tokenizer.broken`.
pub fn check_merges<'a>(
    vocab: &Vocab,
    merges: impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])>,
    name: &str,
) -> Result<()> {
    // Vocabularies of single characters have nothing to merge.
    let is_long = |text: &[u8]| std::str::from_utf8(text).map_or(text.len(), |text| text.chars().count()) > 1;
    let needs = || vocab.ids().any(|(_, text, kind)| kind == TokenKind::Normal && is_long(text));
    let n = merges.len();
    if n == 0 {
        if !needs() {
            return Ok(());
        }
        return Err(EngineError::new(
            "tokenizer.merges_missing",
            format!("{name}: the file has no merges, so its text cannot be split into tokens"),
            "Download another conversion of this model, or convert it again with a newer converter.",
        ));
    }
    let judged = merges.take(MERGES_JUDGED);
    let is_usable = |(left, right): (&[u8], &[u8])| {
        !right.is_empty()
            && vocab.find(left).is_some()
            && vocab.find(right).is_some()
            && vocab.find(&[left, right].concat()).is_some()
    };
    let n_judged = n.min(MERGES_JUDGED);
    let n_usable = judged.filter(|merge| is_usable(*merge)).count();
    if n_usable * 2 <= n_judged && needs() {
        return Err(broken(format!(
            "{name}: only {n_usable} of the first {n_judged} entries are pairs of this vocabulary's tokens"
        )));
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, Default)]
pub struct BpeOptions {
    /// A piece that is a token as a whole is not merged.
    pub ignore_merges: bool,
    /// A character without a token becomes byte tokens.
    pub byte_fallback: bool,
    /// Token for a character without a token. `None`: it is dropped.
    pub unknown: Option<TokenId>,
    /// Consecutive unknown characters become one token.
    pub fuse_unknown: bool,
}

impl Bpe {
    /// Builds the merges. `merges`: left and right text, best first. One that yields no token is dropped; one of
    /// texts that are no tokens is never used.
    pub fn new<'a>(
        vocab: &Vocab,
        merges: impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])>,
        options: BpeOptions,
    ) -> Self {
        let mut found = Vec::with_capacity(merges.len());
        let mut text = Vec::new();
        let mut next = 0; // merges are nearly always ordered by their result
        for (rank, (left, right)) in (0..).zip(merges) {
            text.clear();
            text.extend_from_slice(left);
            text.extend_from_slice(right);
            let Some(whole) = vocab.find_near(&text, next) else { continue };
            next = whole;
            if let Ok(left) = u32::try_from(left.len()) {
                found.push((whole, left, rank));
            }
        }
        Self { merges: Merges::new(vocab.len(), found), options }
    }

    /// Appends the tokens of one piece.
    pub fn encode(&self, vocab: &Vocab, piece: &str, scratch: &mut MergeScratch, out: &mut Vec<TokenId>) {
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
            _ => {
                let whole = vocab.find(&piece.as_bytes()[left.start as usize..right.end as usize])?;
                Some((self.merges.rank(whole, left.end - left.start)?, whole))
            }
        });
        let mut after_unknown = false;
        for symbol in scratch.symbols() {
            if symbol.id != NONE {
                out.push(symbol.id);
                after_unknown = false;
                continue;
            }
            let bytes = &piece.as_bytes()[symbol.start as usize..symbol.end as usize];
            let unknown = self.options.unknown;
            if self.options.byte_fallback && vocab.fall_back(bytes, unknown, out) {
                after_unknown = false;
                continue;
            }
            if !(after_unknown && self.options.fuse_unknown) {
                out.extend(unknown);
            }
            after_unknown = unknown.is_some();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_do_not_depend_on_file_order() {
        // token, bytes of the left part, rank
        let merges = Merges::new(6, vec![(3, 1, 5), (3, 2, 4), (0, 1, 9), (5, 7, 0), (3, 1, 2), (3, 2, 8)]);
        let check = |whole, left, expected| assert_eq!(merges.rank(whole, left), expected, "{whole} {left}");
        check(3, 1, Some(2));
        check(3, 2, Some(4));
        check(0, 1, Some(9));
        check(5, 7, Some(0));
        check(3, 3, None);
        check(1, 1, None);
        check(4, 1, None);
        check(6, 1, None);
        assert_eq!(Merges::new(2, Vec::new()).rank(1, 1), None);
    }
}
