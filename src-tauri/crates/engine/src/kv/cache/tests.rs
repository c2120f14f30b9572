//! Sequences under random and chosen histories: page holders equal table entries, and rewind points are found.

use super::super::size::{RequantizePolicy, WINDOW_REWIND_TOKENS};
use super::*;

const PAGE_LEN: usize = 4;

fn geometry(n_ctx: usize, max_sequences: usize) -> Geometry {
    Geometry {
        page_len: PAGE_LEN,
        n_ctx,
        max_sequences,
        max_rows: 16,
        window: None,
        recurrent: false,
        max_rewind_points: 0,
        n_rewind_window_pages: 0,
        n_rewind_states: 0,
        n_mark_states: 0,
        max_pages: None,
        requantize: RequantizePolicy::default(),
    }
}

pub(super) fn full(n_ctx: usize, max_sequences: usize) -> KvCache {
    KvCache::new(geometry(n_ctx, max_sequences))
}

fn append(cache: &mut KvCache, id: SequenceId, n: usize) -> CopyOnWrite {
    let copies = cache.reserve(id, n).unwrap();
    cache.commit(id, &vec![7; n]).unwrap();
    copies
}

#[test]
fn pages_grow_with_tokens_and_return_on_truncate() {
    let mut cache = full(16, 2);
    let a = cache.create().unwrap();
    append(&mut cache, a, 9);
    assert_eq!(cache.pages(a).unwrap().len(), 3);
    assert_eq!(cache.truncate(a, 8).unwrap(), 8);
    assert_eq!(cache.pages(a).unwrap().len(), 2);
    assert_eq!(cache.truncate(a, 100).unwrap(), 8);
    assert_eq!(cache.truncate(a, 0).unwrap(), 0);
    assert_eq!(cache.usage().n_pages, 0);
}

#[test]
fn forks_share_pages_until_one_side_writes() {
    let mut cache = full(16, 2);
    let a = cache.create().unwrap();
    append(&mut cache, a, 6);
    let b = cache.fork(a).unwrap();
    assert_eq!(cache.usage().n_pages, 2);
    let (from, to) = append(&mut cache, b, 1).page.expect("the half-full page is shared");
    assert_eq!(from, cache.pages(a).unwrap()[1]);
    assert_eq!(to, cache.pages(b).unwrap()[1]);
    assert_eq!(cache.pages(a).unwrap()[0], cache.pages(b).unwrap()[0]);
    assert_eq!(append(&mut cache, a, 1), CopyOnWrite::default(), "the other side holds its page alone now");
    cache.free(a);
    assert_eq!(cache.tokens(b).unwrap().len(), 7);
    cache.free(b);
    assert_eq!(cache.usage().n_pages, 0);
}

#[test]
fn a_fork_at_a_page_border_needs_no_copy() {
    let mut cache = full(16, 2);
    let a = cache.create().unwrap();
    append(&mut cache, a, 8);
    let b = cache.fork(a).unwrap();
    assert_eq!(append(&mut cache, b, 1).page, None);
    cache.truncate(b, 5).unwrap();
    assert!(append(&mut cache, b, 1).page.is_some(), "truncated back into a shared page");
}

#[test]
fn limits_are_errors_that_change_nothing() {
    let mut cache = full(10, 1);
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

#[test]
fn windows_hold_few_pages_at_any_length() {
    let mut cache = KvCache::new(Geometry { window: Some(6), ..geometry(10_000, 1) });
    let a = cache.create().unwrap();
    let most = cache.geometry().live_window_pages();
    assert!(most <= (6 + WINDOW_REWIND_TOKENS + 16) / PAGE_LEN + 2);
    for n in (1..=16).cycle().take(1000) {
        append(&mut cache, a, n);
        assert!(cache.usage().n_window_pages <= most);
    }
    let n = cache.tokens(a).unwrap().len();
    assert_eq!(
        cache.truncate(a, n - WINDOW_REWIND_TOKENS).unwrap(),
        n - WINDOW_REWIND_TOKENS,
        "a short rewind works"
    );
    assert_eq!(cache.truncate(a, n / 2).unwrap(), 0, "a longer one does not without rewind points");
    assert_eq!(cache.usage().n_window_pages, 0);
}

#[test]
fn rewinding_to_rewind_points_loses_nothing() {
    let g =
        Geometry { window: Some(6), max_rewind_points: 8, n_rewind_window_pages: 100, ..geometry(10_000, 1) };
    let mut cache = KvCache::new(g);
    let a = cache.create().unwrap();
    append(&mut cache, a, 10);
    cache.save_rewind_point(a).unwrap();
    cache.pin_window(a).unwrap();
    (0..20).for_each(|_| _ = append(&mut cache, a, 10));
    cache.save_rewind_point(a).unwrap();
    cache.unpin_window(a).unwrap();
    (0..20).for_each(|_| _ = append(&mut cache, a, 10));
    assert_eq!([10, 11, 100, 209, 210].map(|n| cache.reach(a, n).unwrap()), [10, 11, 100, 209, 210]);
    assert_eq!(cache.reach(a, 300).unwrap(), 210, "the window has passed since");
    assert_eq!(cache.truncate(a, 57).unwrap(), 57);

    let g = Geometry { window: Some(6), ..geometry(10_000, 1) };
    let mut cache = KvCache::new(g);
    let a = cache.create().unwrap();
    cache.pin_window(a).unwrap();
    (0..100).for_each(|_| _ = append(&mut cache, a, 16));
    assert!(cache.usage().n_window_pages <= g.n_window_pages(), "held only where there is memory");
}

#[test]
fn truncation_returns_to_rewind_points() {
    let g = Geometry { recurrent: true, max_rewind_points: 8, n_rewind_states: 8, ..geometry(1000, 1) };
    let mut cache = KvCache::new(g);
    let a = cache.create().unwrap();
    append(&mut cache, a, 10);
    cache.save_rewind_point(a).unwrap();
    assert!(append(&mut cache, a, 5).state.is_some(), "the saved state is not written");
    assert_eq!(append(&mut cache, a, 5).state, None);
    cache.save_rewind_point(a).unwrap();
    cache.save_rewind_point(a).unwrap();
    assert_eq!(cache.usage().n_rewind_points, 2);
    append(&mut cache, a, 5);
    assert_eq!(cache.truncate(a, 24).unwrap(), 20);
    append(&mut cache, a, 1);
    assert_eq!(cache.truncate(a, 19).unwrap(), 10);
    assert_eq!(
        cache.usage(),
        KvUsage { n_pages: 3, n_requantized_pages: 0, n_window_pages: 0, n_states: 1, n_rewind_points: 1 }
    );
    assert_eq!(cache.truncate(a, 9).unwrap(), 0);
    assert_eq!(
        cache.usage(),
        KvUsage { n_pages: 0, n_requantized_pages: 0, n_window_pages: 0, n_states: 0, n_rewind_points: 0 }
    );
}

#[test]
fn older_rewind_points_are_thinned() {
    let g = Geometry { recurrent: true, max_rewind_points: 4, n_rewind_states: 4, ..geometry(1000, 1) };
    let mut cache = KvCache::new(g);
    let a = cache.create().unwrap();
    for n in [16, 16, 1, 16, 16, 1, 16] {
        append(&mut cache, a, n);
        cache.save_rewind_point(a).unwrap();
    }
    let positions: Vec<usize> = cache.rewind_points(a).unwrap().iter().map(|kept| kept.position).collect();
    assert_eq!(positions, [32, 65, 66, 82], "short gaps go first, the newest two stay");
}

#[test]
fn rejected_drafts_return_to_the_mark() {
    let g = Geometry { recurrent: true, n_mark_states: 1, ..geometry(1000, 2) };
    let mut cache = KvCache::new(g);
    let (a, b) = (cache.create().unwrap(), cache.create().unwrap());
    append(&mut cache, a, 10);
    append(&mut cache, b, 3);
    assert!(cache.set_mark(a) && !cache.set_mark(b), "there is memory for one");
    assert!(append(&mut cache, a, 5).state.is_some(), "the marked state is not written");
    assert_eq!(cache.truncate(a, 13).unwrap(), 10);
    assert_eq!(cache.usage().n_states, 2, "shared again");
    cache.clear_mark(a);
    assert_eq!(append(&mut cache, a, 2).state, None);
    assert_eq!(cache.truncate(a, 11).unwrap(), 0, "no mark is left");
    assert!(cache.set_mark(b));
    append(&mut cache, b, 1);
    assert_eq!(cache.truncate(b, 2).unwrap(), 0);
    assert_eq!(cache.usage().n_states, 0, "a mark beyond the end is gone");
}

/// What the executor would hold: for every page the tokens that each position was computed from, for every slot the
/// tokens before it.
struct PagedMemory {
    cache: KvCache,
    pages: Vec<Vec<u64>>,
    window_pages: Vec<Vec<u64>>,
    states: Vec<u64>,
}

/// Identifies the first tokens of a sequence.
fn hash(tokens: &[TokenId]) -> u64 {
    tokens.iter().fold(17, |hash, &token| (hash ^ u64::from(token)).wrapping_mul(0x100_0000_01B3))
}

impl PagedMemory {
    fn new(geometry: Geometry) -> Self {
        let pages = |n: usize| vec![vec![0; PAGE_LEN]; n];
        Self {
            pages: pages(geometry.n_pages()),
            window_pages: pages(geometry.n_window_pages()),
            states: vec![0; geometry.n_states()],
            cache: KvCache::new(geometry),
        }
    }

    /// Returns false if memory is full.
    fn reserve(&mut self, id: SequenceId, n: usize) -> bool {
        let Ok(copies) = self.cache.reserve(id, n) else { return false };
        if let Some((from, to)) = copies.page {
            self.pages[to as usize] = self.pages[from as usize].clone();
        }
        if let Some((from, to)) = copies.window_page {
            self.window_pages[to as usize] = self.window_pages[from as usize].clone();
        }
        if let Some((from, to)) = copies.state {
            self.states[to as usize] = self.states[from as usize];
        }
        true
    }

    fn append(&mut self, id: SequenceId, tokens: &[TokenId]) {
        if !self.reserve(id, tokens.len()) {
            return;
        }
        let mut all = self.cache.tokens(id).unwrap().to_vec();
        for token in tokens {
            self.check(id, &all);
            let at = all.len();
            all.push(*token);
            self.pages[self.cache.pages(id).unwrap()[at / PAGE_LEN] as usize][at % PAGE_LEN] = hash(&all);
            if self.cache.geometry.window.is_some() {
                let page = self.cache.window_pages(id).unwrap().get(at / PAGE_LEN).unwrap();
                self.window_pages[page as usize][at % PAGE_LEN] = hash(&all);
            }
            if let Some(slot) = self.cache.state(id).unwrap() {
                self.states[slot as usize] = hash(&all);
            }
        }
        self.cache.commit(id, tokens).unwrap();
    }

    /// Checks that a token after `tokens` would read what those tokens left.
    fn check(&self, id: SequenceId, tokens: &[TokenId]) {
        let n = tokens.len();
        for at in 0..n {
            let page = self.cache.pages(id).unwrap()[at / PAGE_LEN];
            assert_eq!(self.pages[page as usize][at % PAGE_LEN], hash(&tokens[..=at]));
        }
        if let Some(window) = self.cache.geometry.window {
            for at in (n + 1).saturating_sub(window)..n {
                let page =
                    self.cache.window_pages(id).unwrap().get(at / PAGE_LEN).expect("the window is held");
                assert_eq!(self.window_pages[page as usize][at % PAGE_LEN], hash(&tokens[..=at]));
            }
        }
        if self.cache.geometry.recurrent && n > 0 {
            let slot = self.cache.state(id).unwrap().expect("the state is held");
            assert_eq!(self.states[slot as usize], hash(tokens));
        }
    }

    /// Appends drafted tokens and removes them again, with and without a mark.
    fn draft(&mut self, id: SequenceId) {
        let n_held = self.cache.tokens(id).unwrap().len();
        let geometry = self.cache.geometry;
        if self.cache.set_mark(id) {
            self.append(id, &[1, 2, 0, 1, 2, 0]);
            assert_eq!(self.cache.truncate(id, n_held).unwrap(), n_held);
        } else {
            assert!(geometry.n_mark_states < geometry.max_sequences);
        }
    }

    /// Checks that every page and slot has as many holders as table entries, and that none is lost.
    fn count_holders(&self) {
        let KvCache { sequences, pages, window_pages, states, .. } = &self.cache;
        let mut listed = [pages, window_pages, states].map(|pool| vec![0; pool.n_slots()]);
        for sequence in sequences.values() {
            assert_eq!(sequence.pages.end(), sequence.tokens.len().div_ceil(PAGE_LEN));
            let [p, w, s] = &mut listed;
            sequence.pages.held().iter().for_each(|&page| p[page as usize] += 1);
            let windows = sequence.rewind_points.iter().map(|kept| &kept.window).chain([&sequence.window]);
            windows.flat_map(PageTable::held).for_each(|&page| w[page as usize] += 1);
            let marked = sequence.mark.map(|mark| mark.slot);
            let slots = sequence.rewind_points.iter().map(|kept| kept.state).chain([sequence.state, marked]);
            slots.flatten().for_each(|slot| s[slot as usize] += 1);
            assert!(sequence.rewind_points.is_sorted_by(|a, b| a.position < b.position));
        }
        for (pool, listed) in [pages, window_pages, states].into_iter().zip(listed) {
            let held: Vec<u32> = (0..pool.n_slots() as u32).map(|place| pool.n_holders(place)).collect();
            assert_eq!(held, listed);
            assert_eq!(pool.n_held(), listed.iter().filter(|&&n| n > 0).count());
        }
    }
}

/// Random histories over every kind of model: holders equal table entries, and no sequence reads another's content.
#[test]
fn holders_equal_tables_in_random_histories() {
    let plain = Geometry { max_rows: 8, ..geometry(120, 5) };
    let kept = Geometry { max_rewind_points: 6, n_rewind_window_pages: 40, n_rewind_states: 6, ..plain };
    let kinds = [
        plain,
        Geometry { window: Some(5), ..plain },
        Geometry { window: Some(1), ..kept },
        Geometry { window: Some(11), ..kept },
        Geometry { window: Some(500), ..kept },
        Geometry { recurrent: true, ..plain },
        Geometry { recurrent: true, ..kept },
        Geometry { recurrent: true, window: Some(7), n_rewind_window_pages: 3, ..kept },
        Geometry { recurrent: true, n_mark_states: 2, ..plain },
        Geometry { recurrent: true, n_mark_states: 5, window: Some(7), ..kept },
    ];
    for (seed, geometry) in kinds.into_iter().enumerate() {
        let mut state = 12345 + seed as u64;
        let mut draw = |n: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % n
        };
        let mut memory = PagedMemory::new(geometry);
        let mut live: Vec<SequenceId> = Vec::new();
        for _ in 0..4000 {
            let action = draw(16);
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
                    continue;
                }
                3 | 4 => {
                    let before = memory.cache.tokens(id).unwrap().to_vec();
                    let n = draw(n_held + 5);
                    let held = memory.cache.truncate(id, n).unwrap();
                    assert!(held <= n && (n < n_held || held == n_held));
                    assert_eq!(memory.cache.tokens(id).unwrap(), &before[..held]);
                }
                5 if memory.reserve(id, 1 + draw(8)) => {
                    if let Some(slot) = memory.cache.state(id).unwrap() {
                        memory.states[slot as usize] = 0;
                    }
                    let held = memory.cache.revert(id, n_held).unwrap();
                    assert!(held == n_held || geometry.recurrent);
                }
                6 | 7 => memory.cache.save_rewind_point(id).unwrap(),
                10 => memory.cache.pin_window(id).unwrap(),
                11 if draw(2) == 0 => memory.cache.unpin_window(id).unwrap(),
                8 => memory.draft(id),
                9 => memory.cache.clear_mark(id),
                _ => {
                    let tokens: Vec<TokenId> = (0..1 + draw(8)).map(|_| draw(3) as TokenId).collect();
                    memory.append(id, &tokens);
                }
            }
            memory.check(id, memory.cache.tokens(id).unwrap());
            memory.count_holders();
        }
    }
}
