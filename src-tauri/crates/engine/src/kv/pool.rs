//! Numbered places of equal size, pages or slots of recurrent states, and how many hold each.
//!
//! A place with more than one holder is never written: whoever wants to write takes one of its own first.

/// What of a pool is in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolUsage {
    pub n_places: usize,
    pub n_held: usize,
    /// Of those held, by more than one.
    pub n_shared: usize,
    /// Places that were ever used, held or free by now: what the system has given memory for.
    pub n_touched: usize,
}

/// A fixed number of places, and beside them of aged ones, numbered after them: those hold what was in the others
/// before, in fewer bits.
#[derive(Debug)]
pub struct SlotPool {
    /// (places, aged ones)
    holders: Vec<u32>,
    own: SlotRange,
    aged: SlotRange,
    /// Of each place, the aged one that holds the same; NO_PAGE: there is none. Empty where nothing ages.
    requantized_as: Vec<u32>,
    /// Of each aged place, the one that it was made of and that still holds the same.
    exact_of: Vec<u32>,
}

/// Places of one kind.
#[derive(Debug)]
struct SlotRange {
    first: u32,
    n_places: usize,
    /// Places given back; taken before untouched ones, so that memory in use stays compact.
    free: Vec<u32>,
    /// Places from here on were never handed out.
    untouched: u32,
}

impl SlotRange {
    fn new(first: usize, n_places: usize) -> Self {
        let first = u32::try_from(first).expect("a pool has fewer than 2^32 places");
        Self { first, n_places, free: Vec::with_capacity(n_places), untouched: first }
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
        let n_shared = holders[first..first + self.n_places].iter().filter(|&&n| n > 1).count();
        PoolUsage { n_places: self.n_places, n_held: self.n_held(), n_shared, n_touched: self.n_touched() }
    }
}

impl SlotPool {
    pub fn new(n_places: usize) -> Self {
        Self::with_requantized(n_places, 0)
    }

    pub fn with_requantized(n_places: usize, n_requantized: usize) -> Self {
        Self {
            holders: vec![0; n_places + n_requantized],
            own: SlotRange::new(0, n_places),
            aged: SlotRange::new(n_places, n_requantized),
            requantized_as: vec![kernels::NO_PAGE; if n_requantized > 0 { n_places } else { 0 }],
            exact_of: vec![kernels::NO_PAGE; n_requantized],
        }
    }

    pub fn n_places(&self) -> usize {
        self.own.n_places
    }

    pub fn n_held(&self) -> usize {
        self.own.n_held()
    }

    pub fn n_free(&self) -> usize {
        self.n_places() - self.n_held()
    }

    pub fn usage(&self) -> PoolUsage {
        self.own.usage(&self.holders)
    }

    /// Of aged places.
    pub fn requantized_usage(&self) -> PoolUsage {
        self.aged.usage(&self.holders)
    }

    pub fn n_requantized_held(&self) -> usize {
        self.aged.n_held()
    }

    pub fn n_requantized_free(&self) -> usize {
        self.aged.n_places - self.aged.n_held()
    }

    pub fn is_requantized(&self, place: u32) -> bool {
        place >= self.aged.first
    }

    pub fn is_shared(&self, place: u32) -> bool {
        self.holders[place as usize] > 1
    }

    /// How many hold it.
    pub fn n_holders(&self, place: u32) -> u32 {
        self.holders[place as usize]
    }

    /// A place with one holder. The caller has seen that one is free.
    pub fn take(&mut self) -> u32 {
        let place = self.own.take();
        self.holders[place as usize] = 1;
        place
    }

    /// An aged place, as `take`.
    pub fn take_requantized(&mut self) -> u32 {
        let place = self.aged.take();
        self.holders[place as usize] = 1;
        place
    }

    /// The aged place that holds what `place` does. None: it is to be made.
    pub fn requantized_as(&self, place: u32) -> Option<u32> {
        self.requantized_as.get(place as usize).copied().filter(|&aged| aged != kernels::NO_PAGE)
    }

    /// In place of `place`, which one holder less has then, an aged one that holds the same: one that others have
    /// made of it already, or a new one, which is to be filled. The caller has seen that one is free.
    pub fn age(&mut self, place: u32) -> (u32, RequantizedSlot) {
        let found = self.requantized_as(place);
        let aged = found.unwrap_or_else(|| self.take_requantized());
        match found {
            Some(aged) => self.share(aged),
            None => {
                self.requantized_as[place as usize] = aged;
                self.exact_of[(aged - self.aged.first) as usize] = place;
            }
        }
        self.release(place);
        (aged, if found.is_some() { RequantizedSlot::Before } else { RequantizedSlot::New })
    }

    /// Something else will stand in `place`: an aged place that was made of it holds the same no more.
    pub fn rewrites(&mut self, place: u32) {
        if let Some(aged) = self.requantized_as(place) {
            self.requantized_as[place as usize] = kernels::NO_PAGE;
            self.exact_of[(aged - self.aged.first) as usize] = kernels::NO_PAGE;
        }
    }

    /// One holder more.
    pub fn share(&mut self, place: u32) {
        self.holders[place as usize] += 1;
    }

    /// One holder less; the last one frees the place.
    pub fn release(&mut self, place: u32) {
        let holders = &mut self.holders[place as usize];
        *holders -= 1;
        if *holders > 0 {
            return;
        }
        match place.checked_sub(self.aged.first) {
            None => {
                self.rewrites(place);
                self.own.free.push(place);
            }
            Some(index) => {
                let own = self.exact_of[index as usize];
                if own != kernels::NO_PAGE {
                    self.rewrites(own);
                }
                self.aged.free.push(place);
            }
        }
    }
}

/// An aged place that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequantizedSlot {
    /// It holds what it should.
    Before,
    /// It is to be filled.
    New,
}

/// A stretch of a sequence's pages: the page of position p is `pages[p / page_len]`, and those before `first` are
/// gone.
#[derive(Debug, Clone, Default)]
pub struct PageTable {
    /// `kernels::NO_PAGE` before `first`
    pages: Vec<u32>,
    first: usize,
}

impl PageTable {
    /// Room for `n` pages, so that growing to them allocates nothing.
    pub fn with_capacity(n: usize) -> Self {
        Self { pages: Vec::with_capacity(n), first: 0 }
    }

    /// In order of position, with holes in front.
    pub fn table(&self) -> &[u32] {
        &self.pages
    }

    /// The pages that are held.
    pub fn held(&self) -> &[u32] {
        &self.pages[self.first..]
    }

    /// Index of the first page that is held.
    pub fn first(&self) -> usize {
        self.first
    }

    /// One more than the index of the last page.
    pub fn end(&self) -> usize {
        self.pages.len()
    }

    pub fn get(&self, index: usize) -> Option<u32> {
        self.pages.get(index).copied().filter(|_| index >= self.first)
    }

    /// Another holder of the pages `first..end`.
    pub fn share(&self, first: usize, end: usize, pool: &mut SlotPool) -> Self {
        let mut twin = Self::default();
        twin.share_from(self, first, end, pool);
        twin
    }

    /// Lets go of its own pages and holds `first..end` of another's.
    pub fn share_from(&mut self, other: &Self, first: usize, end: usize, pool: &mut SlotPool) {
        assert!(
            other.first <= first && first <= end && end <= other.end(),
            "only pages that are held are shared"
        );
        other.pages[first..end].iter().for_each(|&page| pool.share(page));
        self.clear(pool);
        self.pages.resize(first, kernels::NO_PAGE);
        self.pages.extend_from_slice(&other.pages[first..end]);
        self.first = first;
    }

    /// PageTable `first..end`, all new.
    pub fn take(first: usize, end: usize, pool: &mut SlotPool) -> Self {
        let mut pages = vec![kernels::NO_PAGE; first];
        pages.extend((first..end).map(|_| pool.take()));
        Self { pages, first }
    }

    /// Grows to `end` pages. The page `write_from` that exists already and others hold too is replaced; the copy to
    /// make is returned as (from, to).
    pub fn grow(&mut self, write_from: usize, end: usize, pool: &mut SlotPool) -> Option<(u32, u32)> {
        let copy = self.get(write_from).filter(|&page| pool.is_shared(page)).map(|from| (from, pool.take()));
        if let Some((from, to)) = copy {
            pool.release(from);
            self.pages[write_from] = to;
        } else if let Some(page) = self.get(write_from) {
            pool.rewrites(page);
        }
        while self.pages.len() < end {
            self.pages.push(pool.take());
        }
        copy
    }

    /// PageTable that `grow` would take.
    pub fn n_to_grow(&self, write_from: usize, end: usize, pool: &SlotPool) -> usize {
        let copied = self.get(write_from).is_some_and(|page| pool.is_shared(page));
        end.saturating_sub(self.end()) + usize::from(copied)
    }

    /// The pages `indices` become aged ones. Returns those to fill, each as (from, to).
    pub fn age(&mut self, indices: std::ops::Range<usize>, pool: &mut SlotPool) -> Vec<(u32, u32)> {
        let mut to_requantize = Vec::with_capacity(indices.len());
        for page in &mut self.pages[indices] {
            let from = *page;
            let (to, made) = pool.age(from);
            *page = to;
            match made {
                RequantizedSlot::New => to_requantize.push((from, to)),
                RequantizedSlot::Before => {}
            }
        }
        to_requantize
    }

    /// Where there are none yet, pages `0..end`, all new: the first `n_requantized` aged ones.
    pub fn take_mixed(&mut self, n_requantized: usize, end: usize, pool: &mut SlotPool) {
        assert!(self.pages.is_empty(), "a sequence that begins holds nothing");
        self.pages.extend(
            (0..end).map(|index| if index < n_requantized { pool.take_requantized() } else { pool.take() }),
        );
    }

    /// Keeps the pages before `end` at most; none where those are gone.
    pub fn truncate(&mut self, end: usize, pool: &mut SlotPool) {
        if end < self.first {
            return self.clear(pool);
        }
        self.pages.drain(end.min(self.pages.len())..).for_each(|page| pool.release(page));
    }

    /// Lets go of the pages before `first`.
    pub fn release_before(&mut self, first: usize, pool: &mut SlotPool) {
        for page in self.pages.iter_mut().take(first).skip(self.first) {
            pool.release(std::mem::replace(page, kernels::NO_PAGE));
        }
        self.first = self.first.max(first.min(self.pages.len()));
    }

    pub fn clear(&mut self, pool: &mut SlotPool) {
        self.held().iter().for_each(|&page| pool.release(page));
        self.pages.clear();
        self.first = 0;
    }
}
