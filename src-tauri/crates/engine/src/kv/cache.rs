//! Sequences and their pages: allocation, sharing between forks, copy on write.
//!
//! Pure bookkeeping: it names pages, the executor owns their bytes. A page belongs to every sequence whose
//! table lists it; one that more than one sequence holds is never written, but copied first.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::TokenId;
use crate::error::{EngineError, Result};

/// Names a live sequence of one model. Never reused while the model is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SequenceId(pub u64);

/// A page that must be copied before the next write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageCopy {
    pub from: u32,
    pub to: u32,
}

#[derive(Debug)]
struct Sequence {
    pages: Vec<u32>,
    tokens: Vec<TokenId>,
}

/// All sequences of a model over a pool of pages.
#[derive(Debug)]
pub struct KvCache {
    page_len: usize,
    n_ctx: usize,
    max_sequences: usize,
    sequences: BTreeMap<SequenceId, Sequence>,
    next_id: u64,
    /// How many sequences hold each page. (n_pages)
    holders: Vec<u32>,
    /// Pages given back; taken before untouched ones, so that memory in use stays compact.
    free: Vec<u32>,
    /// Pages from here on were never handed out.
    untouched: u32,
}

impl KvCache {
    /// A pool that lets `max_sequences` sequences reach `n_ctx` tokens each.
    pub fn new(page_len: usize, n_ctx: usize, max_sequences: usize) -> Self {
        assert!(page_len > 0 && n_ctx > 0 && max_sequences > 0, "a cache holds something");
        let n_pages = Self::n_pages_for(page_len, n_ctx, max_sequences);
        Self {
            page_len,
            n_ctx,
            max_sequences,
            sequences: BTreeMap::new(),
            next_id: 1,
            holders: vec![0; n_pages],
            free: Vec::with_capacity(n_pages),
            untouched: 0,
        }
    }

    /// Pages such a pool needs.
    pub fn n_pages_for(page_len: usize, n_ctx: usize, max_sequences: usize) -> usize {
        n_ctx.div_ceil(page_len) * max_sequences
    }

    pub fn page_len(&self) -> usize {
        self.page_len
    }

    /// Tokens a sequence may hold.
    pub fn n_ctx(&self) -> usize {
        self.n_ctx
    }

    pub fn has_free_sequence(&self) -> bool {
        self.sequences.len() < self.max_sequences
    }

    /// Pages that some sequence holds.
    pub fn n_pages_held(&self) -> usize {
        self.untouched as usize - self.free.len()
    }

    /// An empty sequence. Error: as many sequences live as the cache was made for.
    pub fn create(&mut self) -> Result<SequenceId> {
        if !self.has_free_sequence() {
            return Err(EngineError::new(
                "kv.too_many_sequences",
                format!("all {} sequences of this model are in use", self.max_sequences),
                "Wait for a running answer to end, or close a conversation.",
            ));
        }
        let id = SequenceId(self.next_id);
        self.next_id += 1;
        // Room for the whole context, so that no append allocates.
        let pages = Vec::with_capacity(self.n_ctx.div_ceil(self.page_len));
        let tokens = Vec::with_capacity(self.n_ctx);
        self.sequences.insert(id, Sequence { pages, tokens });
        Ok(id)
    }

    /// A sequence with the same tokens; pages are shared until one side writes.
    pub fn fork(&mut self, id: SequenceId) -> Result<SequenceId> {
        self.get(id)?;
        let copy = self.create()?;
        let Sequence { pages, tokens } = self.get(id)?;
        let (pages, tokens) = (pages.clone(), tokens.clone());
        for &page in &pages {
            self.holders[page as usize] += 1;
        }
        let twin = self.get_mut(copy)?;
        twin.pages.extend(pages);
        twin.tokens.extend(tokens);
        Ok(copy)
    }

    /// Forgets a sequence. One that doesn't live is ignored.
    pub fn free(&mut self, id: SequenceId) {
        if let Some(sequence) = self.sequences.remove(&id) {
            for page in sequence.pages {
                self.release(page);
            }
        }
    }

    /// Tokens whose keys and values the sequence holds.
    pub fn tokens(&self, id: SequenceId) -> Result<&[TokenId]> {
        Ok(&self.get(id)?.tokens)
    }

    /// The sequence's page table: the page of position p is `pages[p / page_len]`.
    pub fn pages(&self, id: SequenceId) -> Result<&[u32]> {
        Ok(&self.get(id)?.pages)
    }

    /// Keeps at most the first `n` tokens; returns how many are really held.
    pub fn truncate(&mut self, id: SequenceId, n: usize) -> Result<usize> {
        let page_len = self.page_len;
        let sequence = self.get_mut(id)?;
        sequence.tokens.truncate(n);
        let n_held = sequence.tokens.len();
        let n_pages = n_held.div_ceil(page_len);
        let dropped: Vec<u32> = sequence.pages.drain(n_pages..).collect();
        for page in dropped {
            self.release(page);
        }
        Ok(n_held)
    }

    /// Makes room for `n` more tokens. When the first of them falls into a page that others hold too, that
    /// page is replaced and the copy to make is returned. On error nothing has changed.
    pub fn reserve(&mut self, id: SequenceId, n: usize) -> Result<Option<PageCopy>> {
        let (page_len, n_ctx) = (self.page_len, self.n_ctx);
        let sequence = self.get(id)?;
        let (n_held, n_tables) = (sequence.tokens.len(), sequence.pages.len());
        if n > n_ctx - n_held {
            return Err(context_full(n_held, n, n_ctx));
        }
        let n_pages = (n_held + n).div_ceil(page_len);
        let shared = match sequence.pages.get(n_held / page_len) {
            Some(&page) if n > 0 && self.holders[page as usize] > 1 => Some(page),
            _ => None,
        };
        let copy = shared.map(|from| PageCopy { from, to: self.take() });
        if let Some(PageCopy { from, to }) = copy {
            self.release(from);
            self.get_mut(id)?.pages[n_held / page_len] = to;
        }
        for _ in n_tables..n_pages {
            let page = self.take();
            self.get_mut(id)?.pages.push(page);
        }
        Ok(copy)
    }

    /// Records tokens whose keys and values now stand in the reserved pages.
    pub fn commit(&mut self, id: SequenceId, tokens: &[TokenId]) -> Result<()> {
        let room = self.get(id)?.pages.len() * self.page_len;
        let sequence = self.get_mut(id)?;
        assert!(
            sequence.tokens.len() + tokens.len() <= room,
            "tokens are reserved before they are committed"
        );
        sequence.tokens.extend_from_slice(tokens);
        Ok(())
    }

    fn get(&self, id: SequenceId) -> Result<&Sequence> {
        self.sequences.get(&id).ok_or_else(|| unknown(id))
    }

    fn get_mut(&mut self, id: SequenceId) -> Result<&mut Sequence> {
        self.sequences.get_mut(&id).ok_or_else(|| unknown(id))
    }

    /// A page of its own for a sequence. The pool has one for every position of every sequence, so it never
    /// runs dry.
    fn take(&mut self) -> u32 {
        let page = self.free.pop().unwrap_or_else(|| {
            self.untouched += 1;
            self.untouched - 1
        });
        self.holders[page as usize] = 1;
        page
    }

    fn release(&mut self, page: u32) {
        let holders = &mut self.holders[page as usize];
        *holders -= 1;
        if *holders == 0 {
            self.free.push(page);
        }
    }
}

/// The error for more tokens than a sequence may hold, with the numbers.
pub(crate) fn context_full(n_held: usize, n_more: usize, n_ctx: usize) -> EngineError {
    EngineError::new(
        "request.context_full",
        format!("{n_held} tokens held and {n_more} more exceed the context of {n_ctx} tokens"),
        "Start a new conversation, shorten the text, or load the model with a larger context.",
    )
}

fn unknown(id: SequenceId) -> EngineError {
    EngineError::new(
        "kv.unknown_sequence",
        format!("sequence {} does not exist", id.0),
        "Start the conversation again.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(cache: &mut KvCache, id: SequenceId, n: usize) -> Option<PageCopy> {
        let copy = cache.reserve(id, n).unwrap();
        cache.commit(id, &vec![7; n]).unwrap();
        copy
    }

    #[test]
    fn pages_grow_with_tokens_and_return_on_truncate() {
        let mut cache = KvCache::new(4, 16, 2);
        let a = cache.create().unwrap();
        append(&mut cache, a, 9);
        assert_eq!(cache.pages(a).unwrap().len(), 3);
        assert_eq!(cache.truncate(a, 8).unwrap(), 8);
        assert_eq!(cache.pages(a).unwrap().len(), 2);
        assert_eq!(cache.truncate(a, 100).unwrap(), 8);
        assert_eq!(cache.truncate(a, 0).unwrap(), 0);
        assert_eq!(cache.n_pages_held(), 0);
    }

    #[test]
    fn forks_share_pages_until_one_side_writes() {
        let mut cache = KvCache::new(4, 16, 2);
        let a = cache.create().unwrap();
        append(&mut cache, a, 6);
        let b = cache.fork(a).unwrap();
        assert_eq!(cache.n_pages_held(), 2);
        let copy = append(&mut cache, b, 1).expect("the half-full page is shared");
        assert_eq!(copy.from, cache.pages(a).unwrap()[1]);
        assert_eq!(copy.to, cache.pages(b).unwrap()[1]);
        assert_eq!(cache.pages(a).unwrap()[0], cache.pages(b).unwrap()[0]);
        assert_eq!(append(&mut cache, a, 1), None, "the other side holds its page alone now");
        cache.free(a);
        assert_eq!(cache.tokens(b).unwrap().len(), 7);
        cache.free(b);
        assert_eq!(cache.n_pages_held(), 0);
    }

    #[test]
    fn a_fork_at_a_page_border_needs_no_copy() {
        let mut cache = KvCache::new(4, 16, 2);
        let a = cache.create().unwrap();
        append(&mut cache, a, 8);
        let b = cache.fork(a).unwrap();
        assert_eq!(append(&mut cache, b, 1), None);
        cache.truncate(b, 5).unwrap();
        assert!(append(&mut cache, b, 1).is_some(), "truncated back into a shared page");
    }

    #[test]
    fn limits_are_errors_that_change_nothing() {
        let mut cache = KvCache::new(4, 10, 1);
        let a = cache.create().unwrap();
        assert_eq!(cache.create().unwrap_err().code(), "kv.too_many_sequences");
        assert_eq!(cache.fork(a).unwrap_err().code(), "kv.too_many_sequences");
        append(&mut cache, a, 9);
        let error = cache.reserve(a, 2).unwrap_err();
        assert_eq!(error.code(), "request.context_full");
        assert!(error.to_string().contains("10"), "{error}");
        assert!(cache.reserve(a, usize::MAX).is_err());
        append(&mut cache, a, 1);
        cache.free(a);
        cache.free(a);
        assert_eq!(cache.tokens(a).unwrap_err().code(), "kv.unknown_sequence");
    }

    /// Random histories: every page is held as often as tables list it, and no other page is lost.
    #[test]
    fn holders_equal_tables_in_random_histories() {
        let mut state = 12345u64;
        let mut draw = |n: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % n
        };
        let mut cache = KvCache::new(4, 20, 5);
        let mut live: Vec<SequenceId> = Vec::new();
        for _ in 0..2000 {
            match draw(5) {
                0 => live.extend(cache.create().ok()),
                1 if !live.is_empty() => live.extend(cache.fork(live[draw(live.len())]).ok()),
                2 if !live.is_empty() => cache.free(live.swap_remove(draw(live.len()))),
                3 if !live.is_empty() => {
                    let id = live[draw(live.len())];
                    cache.truncate(id, draw(20)).unwrap();
                }
                _ if !live.is_empty() => {
                    let (id, n) = (live[draw(live.len())], 1 + draw(7));
                    if cache.reserve(id, n).is_ok() {
                        cache.commit(id, &vec![1; n]).unwrap();
                    }
                }
                _ => {}
            }
            let mut listed = vec![0u32; cache.holders.len()];
            for sequence in cache.sequences.values() {
                assert_eq!(sequence.pages.len(), sequence.tokens.len().div_ceil(4));
                sequence.pages.iter().for_each(|&page| listed[page as usize] += 1);
            }
            assert_eq!(listed, cache.holders);
            assert_eq!(cache.n_pages_held(), listed.iter().filter(|&&n| n > 0).count());
        }
    }
}
