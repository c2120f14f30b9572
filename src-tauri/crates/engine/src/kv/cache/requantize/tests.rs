//! Requantization under chosen and random histories: page holders equal table entries, and each page holds what its
//! positions had, exact or requantized.

use super::super::super::pool::{PageTable, PoolUsage};
use super::super::super::requantize::KvRequantize;
use super::*;
use crate::TokenId;

const PAGE_LEN: usize = 32;

fn geometry(when: KvRequantize, n_ctx: usize, max_sequences: usize) -> Geometry {
    Geometry {
        page_len: PAGE_LEN,
        n_ctx,
        max_sequences,
        max_rows: 256,
        window: None,
        recurrent: false,
        max_rewind_points: 0,
        n_rewind_window_pages: 0,
        n_rewind_states: 0,
        n_mark_states: 0,
        max_pages: None,
        requantize: RequantizePolicy { when, page_bytes: 64, requantized_page_bytes: 34 },
    }
}

/// Content of a position: a hash of the tokens up to it, and whether it was requantized.
type Slot = (u64, bool);

/// A cache, and what a model would have written to its pages.
struct RequantizedMemory {
    cache: KvCache,
    /// [slots, PAGE_LEN]
    slots: Vec<[Slot; PAGE_LEN]>,
}

/// FNV-1a, chained.
fn hash(before: u64, token: TokenId) -> u64 {
    (before ^ (u64::from(token) + 1)).wrapping_mul(0x100_0000_01b3)
}

impl RequantizedMemory {
    fn new(geometry: Geometry) -> Self {
        let n = geometry.n_pages() + geometry.n_requantized_pages();
        Self { cache: KvCache::new(geometry), slots: vec![[(0, false); PAGE_LEN]; n] }
    }

    fn turn(&mut self, requantization: &PageRequantization) {
        for &(from, to) in &requantization.to_requantize {
            assert!(
                to as usize >= self.cache.geometry.n_pages()
                    && (from as usize) < self.cache.geometry.n_pages()
            );
            self.slots[to as usize] = self.slots[from as usize].map(|(hash, _)| (hash, true));
        }
        for &page in &requantization.released {
            self.slots[page as usize] = [(0, false); PAGE_LEN];
        }
    }

    /// Appends as a model does: in runs that end where a chunk is requantized. Returns false if memory is full.
    fn append(&mut self, id: SequenceId, tokens: &[TokenId]) -> bool {
        let mut rest = tokens;
        while !rest.is_empty() {
            let n_held = self.cache.tokens(id).unwrap().len();
            let run = (1..rest.len())
                .find(|&n| self.cache.requantizes_at(n_held + n))
                .unwrap_or(rest.len())
                .min(256);
            let (now, then) = rest.split_at(run);
            let Ok(requantization) = self.cache.requantize_due(id) else { return false };
            self.turn(&requantization);
            let Ok(copies) = self.cache.reserve(id, run) else { return false };
            if let Some((from, to)) = copies.page {
                self.slots[to as usize] = self.slots[from as usize];
            }
            let mut before = self.cache.tokens(id).unwrap().iter().fold(7, |at, &token| hash(at, token));
            for (i, &token) in now.iter().enumerate() {
                before = hash(before, token);
                let at = n_held + i;
                let page = self.cache.pages(id).unwrap()[at / PAGE_LEN] as usize;
                assert!(page < self.cache.geometry.n_pages(), "requantized pages are never written");
                self.slots[page][at % PAGE_LEN] = (before, false);
            }
            self.cache.commit(id, now).unwrap();
            rest = then;
        }
        true
    }

    fn requantize_one(&mut self) -> bool {
        let requantization = self.cache.requantize_one();
        requantization.iter().for_each(|requantization| self.turn(requantization));
        requantization.is_some()
    }

    /// Checks that every position holds what its tokens left, requantized exactly where the sequence says so.
    fn check(&self, id: SequenceId) {
        let (tokens, pages) = (self.cache.tokens(id).unwrap(), self.cache.pages(id).unwrap());
        let requantized = self.cache.requantized(id).unwrap();
        assert!(requantized.n_chunks * CHECKPOINT_CHUNK_TOKENS <= tokens.len());
        let mut before = 7;
        for (at, &token) in tokens.iter().enumerate() {
            before = hash(before, token);
            let slot = self.slots[pages[at / PAGE_LEN] as usize][at % PAGE_LEN];
            assert_eq!(
                slot,
                (before, at < requantized.n_chunks * CHECKPOINT_CHUNK_TOKENS),
                "position {at} of {}",
                tokens.len()
            );
        }
    }

    /// Checks that every page has as many holders as table entries, that none is lost, and that all fit their bytes.
    fn count_holders(&self) {
        let KvCache { sequences, pages, geometry, .. } = &self.cache;
        let n = geometry.n_pages() + geometry.n_requantized_pages();
        let mut listed = vec![0; n];
        sequences
            .values()
            .flat_map(|sequence| PageTable::held(&sequence.pages))
            .for_each(|&page| listed[page as usize] += 1);
        let held: Vec<u32> = (0..n as u32).map(|place| pages.n_holders(place)).collect();
        assert_eq!(held, listed);
        let (own, requantized) = listed.split_at(geometry.n_pages());
        let count = |listed: &[u32]| listed.iter().filter(|&&n| n > 0).count();
        assert_eq!((pages.n_held(), pages.n_requantized_held()), (count(own), count(requantized)));
        for (usage, listed) in [(pages.usage(), own), (pages.requantized_usage(), requantized)] {
            let PoolUsage { n_slots, n_held, n_shared, n_touched } = usage;
            assert_eq!((n_slots, n_held), (listed.len(), count(listed)));
            assert_eq!(n_shared, listed.iter().filter(|&&n| n > 1).count());
            assert!(n_touched >= n_held && n_touched <= n_slots);
        }
        let bytes = count(own) as u64 * 64 + count(requantized) as u64 * 34;
        assert!(bytes <= geometry.n_pages() as u64 * 64, "{bytes} bytes");
    }
}

fn tokens(n: usize, seed: u32) -> Vec<TokenId> {
    (0..n as u32).map(|i| (i * 7 + i / 5 + seed) % 50).collect()
}

#[test]
fn requantization_by_length_does_not_depend_on_runs() {
    let mut memory = RequantizedMemory::new(geometry(KvRequantize::After(512), 3000, 3));
    let text = tokens(2000, 1);
    for runs in [256, 100, 1] {
        let id = memory.cache.create().unwrap();
        text.chunks(runs).for_each(|run| assert!(memory.append(id, run)));
        // the last token is in the chunk that begins at 1792: requantized are those that end 512 before
        let requantized = memory.cache.requantized(id).unwrap();
        assert_eq!(
            (requantized, requantized.n_chunks),
            (&Requantized::by_length(KvRequantize::After(512), 2000), 5),
            "runs of {runs}"
        );
        memory.check(id);
        memory.count_holders();
    }
    assert_eq!(memory.cache.usage().n_requantized_pages, 3 * 5 * 8);
    let exact = 2000usize.div_ceil(PAGE_LEN) - 40;
    assert_eq!(memory.cache.usage().n_pages, 3 * exact);
}

#[test]
fn rewinding_keeps_whole_requantized_chunks() {
    let mut memory = RequantizedMemory::new(geometry(KvRequantize::After(256), 3000, 3));
    let a = memory.cache.create().unwrap();
    memory.append(a, &tokens(1500, 1));
    assert_eq!(memory.cache.requantized(a).unwrap().n_chunks, 4);
    assert_eq!(memory.cache.reach(a, 1100).unwrap(), 1100);
    assert_eq!(memory.cache.truncate(a, 1100).unwrap(), 1100, "beyond the requantized chunks: anywhere");
    assert_eq!(memory.cache.reach(a, 700).unwrap(), 512);
    let b = memory.cache.fork(a).unwrap();
    assert_eq!(memory.cache.truncate(b, 700).unwrap(), 512, "within them: to whole chunks");
    assert_eq!(memory.cache.requantized(b).unwrap().n_chunks, 2, "which stay requantized");
    // from here on it differs from a sequence of that length, and its key says so
    memory.append(b, &tokens(100, 9));
    let by_length = Requantized::by_length(KvRequantize::After(256), 612);
    assert_eq!((by_length.n_chunks, memory.cache.requantized(b).unwrap().n_chunks), (1, 2));
    assert_ne!(memory.cache.requantized(b).unwrap().views_within(512, 612), by_length.views_within(512, 612));
    assert_eq!(memory.cache.truncate(b, 200).unwrap(), 0);
    assert!(memory.cache.requantized(b).unwrap().is_exact(), "no requantized chunk is left");
    for id in [a, b] {
        memory.check(id);
        memory.count_holders();
    }
}

#[test]
fn forks_requantize_into_the_same_pages() {
    let mut memory = RequantizedMemory::new(geometry(KvRequantize::After(256), 3000, 3));
    let a = memory.cache.create().unwrap();
    memory.append(a, &tokens(500, 1));
    let b = memory.cache.fork(a).unwrap();
    memory.append(a, &tokens(200, 2));
    assert_eq!(
        (memory.cache.requantized(a).unwrap().n_chunks, memory.cache.requantized(b).unwrap().n_chunks),
        (1, 0)
    );
    memory.check(a);
    memory.check(b);
    assert_eq!(memory.cache.usage().n_requantized_pages, 8);
    memory.append(b, &tokens(200, 3));
    assert_eq!(memory.cache.requantized(b).unwrap().n_chunks, 1);
    assert_eq!(memory.cache.usage().n_requantized_pages, 8, "one requantized it, both hold it");
    assert_eq!(memory.cache.pages(a).unwrap()[..8], memory.cache.pages(b).unwrap()[..8]);
    memory.check(b);
    memory.count_holders();
    memory.cache.free(a);
    memory.check(b);
    memory.cache.free(b);
    memory.count_holders();
}

/// `b` becomes the only holder of a page that `a` requantized, and writes to it: the requantized page no longer
/// matches it.
#[test]
fn rewritten_pages_lose_their_requantized_form() {
    let mut memory = RequantizedMemory::new(geometry(KvRequantize::After(256), 3000, 3));
    let a = memory.cache.create().unwrap();
    memory.append(a, &tokens(300, 1));
    let b = memory.cache.fork(a).unwrap();
    memory.append(a, &tokens(400, 2)); // [t] requantizes the first chunk; `b` keeps its exact pages
    memory.cache.truncate(b, 250).unwrap();
    memory.append(b, &tokens(600, 5)); // [t] changes its eighth page
    assert_eq!(
        (memory.cache.requantized(a).unwrap().n_chunks, memory.cache.requantized(b).unwrap().n_chunks),
        (1, 2)
    );
    memory.check(a);
    memory.check(b);
    let [a, b] = [a, b].map(|id| memory.cache.pages(id).unwrap()[..8].to_vec());
    assert!(a[..7] == b[..7] && a[7] != b[7]);
    memory.count_holders();
}

#[test]
fn pressure_requantizes_the_longest_and_frees_its_pages() {
    let when = KvRequantize::Pressure;
    let mut memory = RequantizedMemory::new(Geometry { max_pages: Some(64), ..geometry(when, 2048, 3) });
    let (a, b) = (memory.cache.create().unwrap(), memory.cache.create().unwrap());
    assert!(memory.append(a, &tokens(1200, 1)) && memory.append(b, &tokens(800, 2)));
    let c = memory.cache.create().unwrap();
    assert!(!memory.append(c, &tokens(200, 3)), "63 of 64 pages are held");
    let mut n_requantized = 0;
    while memory.cache.n_free_pages() < 200usize.div_ceil(PAGE_LEN) {
        assert!(memory.requantize_one());
        n_requantized += 1;
        memory.count_holders();
    }
    assert_eq!(n_requantized, 2);
    assert_eq!(
        (memory.cache.requantized(a).unwrap().n_chunks, memory.cache.requantized(b).unwrap().n_chunks),
        (2, 0)
    );
    assert!(memory.append(c, &tokens(200, 3)));
    while memory.requantize_one() {}
    assert_eq!(
        [a, b, c].map(|id| memory.cache.requantized(id).unwrap().n_chunks),
        [3, 2, 0],
        "the newest stay exact"
    );
    [a, b, c].into_iter().for_each(|id| memory.check(id));
    // later tokens saw requantized ones, which distinguishes them from exact ones
    memory.append(a, &tokens(10, 4));
    assert!(!memory.cache.requantized(a).unwrap().is_exact());
    memory.count_holders();
}

#[test]
fn shared_pages_are_requantized_for_all_holders_or_none() {
    let when = KvRequantize::Pressure;
    let mut memory = RequantizedMemory::new(Geometry { max_pages: Some(64), ..geometry(when, 2048, 3) });
    let a = memory.cache.create().unwrap();
    memory.append(a, &tokens(700, 1));
    let b = memory.cache.fork(a).unwrap();
    let before = memory.cache.free_bytes();
    assert!(memory.requantize_one());
    assert_eq!([a, b].map(|id| memory.cache.requantized(id).unwrap().n_chunks), [1, 1]);
    assert_eq!(memory.cache.free_bytes() - before, 8 * (64 - 34), "together they save as much as one");
    // a third sequence, too short to requantize, keeps the exact pages: requantizing would save nothing
    let c = memory.cache.fork(b).unwrap();
    memory.cache.truncate(c, 512).unwrap();
    assert!(!memory.requantize_one());
    memory.cache.free(c);
    assert!(!memory.requantize_one(), "700 tokens: the next stretch is among the newest");
    [a, b].into_iter().for_each(|id| memory.check(id));
    memory.count_holders();
}

#[test]
fn random_histories_lose_no_page() {
    let plain = geometry(KvRequantize::After(256), 2000, 4);
    let kinds = [
        plain,
        Geometry { max_pages: Some(90), ..plain },
        Geometry { max_pages: Some(90), ..geometry(KvRequantize::Pressure, 2000, 4) },
        Geometry { max_pages: Some(70), ..geometry(KvRequantize::After(700), 2000, 5) },
    ];
    for (seed, geometry) in kinds.into_iter().enumerate() {
        let mut state = 777 + seed as u64;
        let mut draw = |n: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % n
        };
        let mut memory = RequantizedMemory::new(geometry);
        let mut live: Vec<SequenceId> = Vec::new();
        for _ in 0..1500 {
            let action = draw(12);
            if action == 0 || live.is_empty() {
                live.extend(memory.cache.create().ok());
                continue;
            }
            let id = live[draw(live.len())];
            let n_held = memory.cache.tokens(id).unwrap().len();
            match action {
                1 => live.extend(memory.cache.fork(id).ok()),
                2 if draw(3) == 0 => {
                    memory.cache.free(id);
                    live.retain(|&other| other != id);
                    memory.count_holders();
                    continue;
                }
                3 | 4 => {
                    let n = draw(n_held + 5);
                    let reach = memory.cache.reach(id, n).unwrap();
                    assert_eq!(memory.cache.truncate(id, n).unwrap(), reach);
                    assert!(reach <= n && (n - reach.min(n) < CHECKPOINT_CHUNK_TOKENS || n > n_held));
                }
                5 => _ = memory.requantize_one(),
                _ => {
                    let n = 1 + draw(300);
                    let n = n.min(2000 - n_held);
                    memory.append(id, &tokens(n, draw(3) as u32));
                }
            }
            memory.check(id);
            memory.count_holders();
        }
    }
}
