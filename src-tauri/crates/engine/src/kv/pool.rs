//! Numbered places of equal size, pages or slots of recurrent states, and how many hold each.
//!
//! A place with more than one holder is never written: whoever wants to write takes one of its own first.

/// What of a pool is in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolUse {
    pub n_places: usize,
    pub n_held: usize,
    /// Of those held, by more than one.
    pub n_shared: usize,
    /// Places that were ever used, held or free by now: what the system has given memory for.
    pub n_touched: usize,
}

/// A fixed number of places.
#[derive(Debug)]
pub struct Pool {
    /// (n_places)
    holders: Vec<u32>,
    /// Places given back; taken before untouched ones, so that memory in use stays compact.
    free: Vec<u32>,
    /// Places from here on were never handed out.
    untouched: u32,
}

impl Pool {
    pub fn new(n_places: usize) -> Self {
        Self { holders: vec![0; n_places], free: Vec::with_capacity(n_places), untouched: 0 }
    }

    pub fn n_places(&self) -> usize {
        self.holders.len()
    }

    pub fn n_held(&self) -> usize {
        self.untouched as usize - self.free.len()
    }

    pub fn n_free(&self) -> usize {
        self.n_places() - self.n_held()
    }

    pub fn usage(&self) -> PoolUse {
        let n_shared = self.holders.iter().filter(|&&n| n > 1).count();
        let n_touched = self.untouched as usize;
        PoolUse { n_places: self.n_places(), n_held: self.n_held(), n_shared, n_touched }
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
        let place = self.free.pop().unwrap_or_else(|| {
            self.untouched += 1;
            self.untouched - 1
        });
        self.holders[place as usize] = 1;
        place
    }

    /// One holder more.
    pub fn share(&mut self, place: u32) {
        self.holders[place as usize] += 1;
    }

    /// One holder less; the last one frees the place.
    pub fn release(&mut self, place: u32) {
        let holders = &mut self.holders[place as usize];
        *holders -= 1;
        if *holders == 0 {
            self.free.push(place);
        }
    }
}

/// A stretch of a sequence's pages: the page of position p is `pages[p / page_len]`, and those before `first` are
/// gone.
#[derive(Debug, Clone, Default)]
pub struct Pages {
    /// `kernels::NO_PAGE` before `first`
    pages: Vec<u32>,
    first: usize,
}

impl Pages {
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
    pub fn share(&self, first: usize, end: usize, pool: &mut Pool) -> Self {
        let mut twin = Self::default();
        twin.share_from(self, first, end, pool);
        twin
    }

    /// Lets go of its own pages and holds `first..end` of another's.
    pub fn share_from(&mut self, other: &Self, first: usize, end: usize, pool: &mut Pool) {
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

    /// Pages `first..end`, all new.
    pub fn take(first: usize, end: usize, pool: &mut Pool) -> Self {
        let mut pages = vec![kernels::NO_PAGE; first];
        pages.extend((first..end).map(|_| pool.take()));
        Self { pages, first }
    }

    /// Grows to `end` pages. The page `write_from` that exists already and others hold too is replaced; the copy to
    /// make is returned as (from, to).
    pub fn grow(&mut self, write_from: usize, end: usize, pool: &mut Pool) -> Option<(u32, u32)> {
        let copy = self.get(write_from).filter(|&page| pool.is_shared(page)).map(|from| (from, pool.take()));
        if let Some((from, to)) = copy {
            pool.release(from);
            self.pages[write_from] = to;
        }
        while self.pages.len() < end {
            self.pages.push(pool.take());
        }
        copy
    }

    /// Pages that `grow` would take.
    pub fn n_to_grow(&self, write_from: usize, end: usize, pool: &Pool) -> usize {
        let copied = self.get(write_from).is_some_and(|page| pool.is_shared(page));
        end.saturating_sub(self.end()) + usize::from(copied)
    }

    /// Keeps the pages before `end` at most; none where those are gone.
    pub fn truncate(&mut self, end: usize, pool: &mut Pool) {
        if end < self.first {
            return self.clear(pool);
        }
        self.pages.drain(end.min(self.pages.len())..).for_each(|page| pool.release(page));
    }

    /// Lets go of the pages before `first`.
    pub fn forget_before(&mut self, first: usize, pool: &mut Pool) {
        for page in self.pages.iter_mut().take(first).skip(self.first) {
            pool.release(std::mem::replace(page, kernels::NO_PAGE));
        }
        self.first = self.first.max(first.min(self.pages.len()));
    }

    pub fn clear(&mut self, pool: &mut Pool) {
        self.held().iter().for_each(|&page| pool.release(page));
        self.pages.clear();
        self.first = 0;
    }
}
