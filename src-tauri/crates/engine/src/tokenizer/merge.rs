//! MergeModel neighbours, the best pair first: what byte-pair encoding and SentencePiece have in common.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::TokenId;

pub const NONE: u32 = u32::MAX;

/// A stretch of text that is one token so far.
#[derive(Debug, Clone, Copy)]
pub struct Symbol {
    /// Bytes of the text. An empty stretch was merged into its neighbour.
    pub start: u32,
    pub end: u32,
    /// `NONE` where the vocabulary has no token for it.
    pub id: TokenId,
    prev: u32,
    next: u32,
}

/// A merge that was possible when it was noted down.
#[derive(Debug, PartialEq, Eq)]
struct MergeCandidate {
    /// The smallest goes first; among equals the leftmost.
    rank: u32,
    left: u32,
    right: u32,
    /// Where the right symbol ended: it has grown since if it ends elsewhere now.
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

/// Room that is kept from piece to piece.
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

    /// Merges until nothing can be. `pair` gives the rank and the new token of two neighbours.
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

    /// What is left, in order.
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
