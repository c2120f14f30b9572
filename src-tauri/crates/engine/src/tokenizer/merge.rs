//! Merging of neighbors, best pair first: the common part of BPE and SentencePiece.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::TokenId;

pub const NONE: u32 = u32::MAX;

/// A piece of text that is one token so far.
#[derive(Debug, Clone, Copy)]
pub struct Symbol {
    /// Bytes of the text. Empty if it was merged into its neighbor.
    pub start: u32,
    pub end: u32,
    /// `NONE` if the vocabulary has no token for it.
    pub id: TokenId,
    prev: u32,
    next: u32,
}

/// A merge that was possible when it was queued.
#[derive(Debug, PartialEq, Eq)]
struct MergeCandidate {
    /// The smallest goes first, ties from the left.
    rank: u32,
    left: u32,
    right: u32,
    /// End of the right symbol when queued. A different end means it has grown since.
    end: u32,
    id: TokenId,
}

impl Ord for MergeCandidate {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.rank, other.left).cmp(&(self.rank, self.left))
    }
}

impl PartialOrd for MergeCandidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Buffers reused between pieces.
#[derive(Debug, Default)]
pub struct MergeScratch {
    symbols: Vec<Symbol>,
    offers: BinaryHeap<MergeCandidate>,
}

impl MergeScratch {
    pub fn clear(&mut self) {
        self.symbols.clear();
        self.offers.clear();
    }

    pub fn push(&mut self, start: u32, end: u32, id: TokenId) {
        let at = self.symbols.len() as u32;
        if let Some(last) = self.symbols.last_mut() {
            last.next = at;
        }
        let prev = at.checked_sub(1).unwrap_or(NONE);
        self.symbols.push(Symbol { start, end, id, prev, next: NONE });
    }

    /// Merges until no pair is left. `pair` returns the rank and new token of two neighbors.
    pub fn merge(&mut self, pair: impl Fn(&Symbol, &Symbol) -> Option<(u32, TokenId)>) {
        for right in 1..self.symbols.len() as u32 {
            self.offer(right - 1, right, &pair);
        }
        while let Some(offer) = self.offers.pop() {
            let (left, right) = (self.symbols[offer.left as usize], self.symbols[offer.right as usize]);
            let stands = left.start < left.end && left.next == offer.right && right.end == offer.end;
            if !stands {
                continue;
            }
            let merged = &mut self.symbols[offer.left as usize];
            (merged.end, merged.id, merged.next) = (right.end, offer.id, right.next);
            let (prev, next) = (merged.prev, merged.next);
            let gone = &mut self.symbols[offer.right as usize];
            gone.end = gone.start;
            if next != NONE {
                self.symbols[next as usize].prev = offer.left;
                self.offer(offer.left, next, &pair);
            }
            if prev != NONE {
                self.offer(prev, offer.left, &pair);
            }
        }
    }

    /// Iterates over the remaining symbols, in order.
    pub fn symbols(&self) -> impl Iterator<Item = &Symbol> {
        self.symbols.iter().filter(|s| s.start < s.end)
    }

    fn offer(&mut self, left: u32, right: u32, pair: &impl Fn(&Symbol, &Symbol) -> Option<(u32, TokenId)>) {
        let (l, r) = (&self.symbols[left as usize], &self.symbols[right as usize]);
        if let Some((rank, id)) = pair(l, r) {
            self.offers.push(MergeCandidate { rank, left, right, end: r.end, id });
        }
    }
}
