//! Reference-counted pools of numbered slots: pages, or slots of recurrent states.
//!
//! A slot with several holders is never written: a writer takes a private slot first.

/// Usage of a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolUsage {
    /// All slots.
    pub n_slots: usize,
    /// Slots with at least one holder.
    pub n_held: usize,
    /// Held slots with more than one holder.
    pub n_shared: usize,
    /// Slots ever handed out: the memory that the system has committed.
    pub n_touched: usize,
}

/// A fixed number of slots, followed by slots for their requantized form.
#[derive(Debug)]
pub struct SlotPool {
    /// (slots, requantized slots)
    holders: Vec<u32>,
    exact: SlotRange,
    requantized: SlotRange,
    /// For each slot the requantized slot with the same content, or `NO_PAGE`. Empty without requantization.
    requantized_as: Vec<u32>,
    /// For each requantized slot the exact slot that it was made of and that still has the same content.
    exact_of: Vec<u32>,
}

/// Slots of one kind.
#[derive(Debug)]
struct SlotRange {
    first: u32,
    n_slots: usize,
    /// Freed slots. Taken before untouched ones, to keep the committed memory compact.
    free: Vec<u32>,
    /// Slots from here on were never handed out.
    untouched: u32,
}

impl SlotRange {
    fn new(first: usize, n_slots: usize) -> Self {
        let first = u32::try_from(first).expect("a pool has fewer than 2^32 slots");
        Self { first, n_slots, free: Vec::with_capacity(n_slots), untouched: first }
    }

    fn n_touched(&self) -> usize {
        (self.untouched - self.first) as usize
    }

    fn n_held(&self) -> usize {
        self.n_touched() - self.free.len()
    }

    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.untouched += 1;
            self.untouched - 1
        })
    }

    fn usage(&self, holders: &[u32]) -> PoolUsage {
        let first = self.first as usize;
        let n_shared = holders[first..first + self.n_slots].iter().filter(|&&n| n > 1).count();
        PoolUsage { n_slots: self.n_slots, n_held: self.n_held(), n_shared, n_touched: self.n_touched() }
    }
}

impl SlotPool {
    /// Creates a pool of free slots.
    pub fn new(n_slots: usize) -> Self {
        Self::with_requantized(n_slots, 0)
    }

    /// Creates a pool with additional slots for requantized content.
    pub fn with_requantized(n_slots: usize, n_requantized: usize) -> Self {
        Self {
            holders: vec![0; n_slots + n_requantized],
            exact: SlotRange::new(0, n_slots),
            requantized: SlotRange::new(n_slots, n_requantized),
            requantized_as: vec![kernels::NO_PAGE; if n_requantized > 0 { n_slots } else { 0 }],
            exact_of: vec![kernels::NO_PAGE; n_requantized],
        }
    }

    /// Returns the number of exact slots.
    pub fn n_slots(&self) -> usize {
        self.exact.n_slots
    }

    /// Returns the number of exact slots with a holder.
    pub fn n_held(&self) -> usize {
        self.exact.n_held()
    }

    /// Returns the number of free exact slots.
    pub fn n_free(&self) -> usize {
        self.n_slots() - self.n_held()
    }

    /// Returns the usage of exact slots.
    pub fn usage(&self) -> PoolUsage {
        self.exact.usage(&self.holders)
    }

    /// Returns the usage of requantized slots.
    pub fn requantized_usage(&self) -> PoolUsage {
        self.requantized.usage(&self.holders)
    }

    /// Returns the number of requantized slots with a holder.
    pub fn n_requantized_held(&self) -> usize {
        self.requantized.n_held()
    }

    /// Returns the number of free requantized slots.
    pub fn n_requantized_free(&self) -> usize {
        self.requantized.n_slots - self.requantized.n_held()
    }

    /// Returns whether a slot is for requantized content.
    pub fn is_requantized(&self, slot: u32) -> bool {
        slot >= self.requantized.first
    }

    /// Returns whether a slot has several holders.
    pub fn is_shared(&self, slot: u32) -> bool {
        self.holders[slot as usize] > 1
    }

    /// Returns the number of holders.
    pub fn n_holders(&self, slot: u32) -> u32 {
        self.holders[slot as usize]
    }

    /// Takes a slot with one holder. The caller has checked that one is free.
    pub fn take(&mut self) -> u32 {
        let slot = self.exact.take();
        self.holders[slot as usize] = 1;
        slot
    }

    /// Takes a requantized slot. The caller has checked that one is free.
    pub fn take_requantized(&mut self) -> u32 {
        let slot = self.requantized.take();
        self.holders[slot as usize] = 1;
        slot
    }

    /// Returns the requantized slot with the content of `slot`, if it exists.
    pub fn requantized_as(&self, slot: u32) -> Option<u32> {
        self.requantized_as.get(slot as usize).copied().filter(|&requantized| requantized != kernels::NO_PAGE)
    }

    /// Exchanges one hold on `slot` for one on its requantized form: an existing slot, or a new one to fill. The
    /// caller has checked that one is free.
    pub fn requantize(&mut self, slot: u32) -> (u32, RequantizedSlot) {
        let found = self.requantized_as(slot);
        let requantized = found.unwrap_or_else(|| self.take_requantized());
        match found {
            Some(requantized) => self.share(requantized),
            None => {
                self.requantized_as[slot as usize] = requantized;
                self.exact_of[(requantized - self.requantized.first) as usize] = slot;
            }
        }
        self.release(slot);
        (requantized, if found.is_some() { RequantizedSlot::Existing } else { RequantizedSlot::New })
    }

    /// Notes that `slot` will be overwritten: its requantized form no longer matches it.
    pub fn unlink_requantized(&mut self, slot: u32) {
        if let Some(requantized) = self.requantized_as(slot) {
            self.requantized_as[slot as usize] = kernels::NO_PAGE;
            self.exact_of[(requantized - self.requantized.first) as usize] = kernels::NO_PAGE;
        }
    }

    /// Adds a holder.
    pub fn share(&mut self, slot: u32) {
        self.holders[slot as usize] += 1;
    }

    /// Removes a holder. The last one frees the slot.
    pub fn release(&mut self, slot: u32) {
        let holders = &mut self.holders[slot as usize];
        *holders -= 1;
        if *holders > 0 {
            return;
        }
        match slot.checked_sub(self.requantized.first) {
            None => {
                self.unlink_requantized(slot);
                self.exact.free.push(slot);
            }
            Some(index) => {
                let exact = self.exact_of[index as usize];
                if exact != kernels::NO_PAGE {
                    self.unlink_requantized(exact);
                }
                self.requantized.free.push(slot);
            }
        }
    }
}

/// State of a requantized slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequantizedSlot {
    /// It already holds the content.
    Existing,
    /// It must be filled.
    New,
}

/// Pages of a sequence: position p lies in `pages[p / page_len]`. Pages before `first` have been released.
#[derive(Debug, Clone, Default)]
pub struct PageTable {
    /// `kernels::NO_PAGE` before `first`.
    pages: Vec<u32>,
    first: usize,
}

impl PageTable {
    /// Creates an empty table with capacity for `n` pages, so that growing does not allocate.
    pub fn with_capacity(n: usize) -> Self {
        Self { pages: Vec::with_capacity(n), first: 0 }
    }

    /// Returns the pages ordered by position, `kernels::NO_PAGE` for released ones.
    pub fn table(&self) -> &[u32] {
        &self.pages
    }

    /// Returns the pages that are held.
    pub fn held(&self) -> &[u32] {
        &self.pages[self.first..]
    }

    /// Returns the index of the first held page.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Returns the index after the last page.
    pub fn end(&self) -> usize {
        self.pages.len()
    }

    /// Returns the slot of the page at `index`.
    pub fn get(&self, index: usize) -> Option<u32> {
        self.pages.get(index).copied().filter(|_| index >= self.first)
    }

    /// Creates another holder of the pages `first..end`.
    pub fn share(&self, first: usize, end: usize, pool: &mut SlotPool) -> Self {
        let mut fork = Self::default();
        fork.share_from(self, first, end, pool);
        fork
    }

    /// Releases its pages and holds the pages `first..end` of `other`.
    pub fn share_from(&mut self, other: &Self, first: usize, end: usize, pool: &mut SlotPool) {
        assert!(other.first <= first && first <= end && end <= other.end(), "only held pages are shared");
        other.pages[first..end].iter().for_each(|&page| pool.share(page));
        self.clear(pool);
        self.pages.resize(first, kernels::NO_PAGE);
        self.pages.extend_from_slice(&other.pages[first..end]);
        self.first = first;
    }

    /// Takes new pages `first..end`.
    pub fn take(first: usize, end: usize, pool: &mut SlotPool) -> Self {
        let mut pages = vec![kernels::NO_PAGE; first];
        pages.extend((first..end).map(|_| pool.take()));
        Self { pages, first }
    }

    /// Grows to `end` pages. A shared page at `write_from` is replaced; the copy to make is returned as (from, to).
    pub fn grow(&mut self, write_from: usize, end: usize, pool: &mut SlotPool) -> Option<(u32, u32)> {
        let copy = self.get(write_from).filter(|&page| pool.is_shared(page)).map(|from| (from, pool.take()));
        if let Some((from, to)) = copy {
            pool.release(from);
            self.pages[write_from] = to;
        } else if let Some(page) = self.get(write_from) {
            pool.unlink_requantized(page);
        }
        while self.pages.len() < end {
            self.pages.push(pool.take());
        }
        copy
    }

    /// Returns the number of pages that `grow` would take.
    pub fn n_to_grow(&self, write_from: usize, end: usize, pool: &SlotPool) -> usize {
        let copied = self.get(write_from).is_some_and(|page| pool.is_shared(page));
        end.saturating_sub(self.end()) + usize::from(copied)
    }

    /// Requantizes the pages at `indices`. Returns the pages to fill, each as (from, to).
    pub fn requantize(&mut self, indices: std::ops::Range<usize>, pool: &mut SlotPool) -> Vec<(u32, u32)> {
        let mut to_requantize = Vec::with_capacity(indices.len());
        for page in &mut self.pages[indices] {
            let from = *page;
            let (to, made) = pool.requantize(from);
            *page = to;
            match made {
                RequantizedSlot::New => to_requantize.push((from, to)),
                RequantizedSlot::Existing => {}
            }
        }
        to_requantize
    }

    /// Takes new pages `0..end` for an empty table, the first `n_requantized` of them requantized.
    pub fn take_mixed(&mut self, n_requantized: usize, end: usize, pool: &mut SlotPool) {
        assert!(self.pages.is_empty(), "a new sequence holds no pages");
        self.pages.extend(
            (0..end).map(|index| if index < n_requantized { pool.take_requantized() } else { pool.take() }),
        );
    }

    /// Drops the pages from `end` on. Drops all if the pages before `end` are gone.
    pub fn truncate(&mut self, end: usize, pool: &mut SlotPool) {
        if end < self.first {
            return self.clear(pool);
        }
        self.pages.drain(end.min(self.pages.len())..).for_each(|page| pool.release(page));
    }

    /// Releases the pages before `first`.
    pub fn release_before(&mut self, first: usize, pool: &mut SlotPool) {
        for page in self.pages.iter_mut().take(first).skip(self.first) {
            pool.release(std::mem::replace(page, kernels::NO_PAGE));
        }
        self.first = self.first.max(first.min(self.pages.len()));
    }

    /// Releases all slots.
    pub fn clear(&mut self, pool: &mut SlotPool) {
        self.held().iter().for_each(|&page| pool.release(page));
        self.pages.clear();
        self.first = 0;
    }
}
