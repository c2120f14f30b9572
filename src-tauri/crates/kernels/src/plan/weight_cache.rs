//! Decides which weights stay in memory when not all of them fit: those that will be needed soonest.
//!
//! A model reads its weights in the same order for every token, so the least recently used weights are the next ones
//! needed, and LRU would never hit. Eviction is Belady's instead: the next use of a dense matrix is known exactly; that of
//! an expert is estimated from how often it was chosen recently. Pure: knows no bytes, files or clocks.

use std::ops::Range;

/// Weights that are loaded and evicted as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightGroup {
    /// size in bytes
    pub n_bytes: u64,
    /// position in the run's order of execution; several groups may share one
    pub position: u32,
    /// probability that a run needs it: 1 for everything but experts
    pub use_probability: f32,
}

/// Weight of the newest observation in an expert's use probability: about the last 64 count.
const DECAY: f32 = 1.0 / 64.0;
/// Lower bound, since an expert that was never chosen still may be.
const MIN_USE_PROBABILITY: f32 = 1e-4;

/// The weights of a model of which at most `budget` bytes are in memory.
#[derive(Debug)]
pub struct WeightCache {
    groups: Vec<WeightGroup>,
    is_resident: Vec<bool>,
    is_pinned: Vec<bool>,
    /// groups needed at the current position or prefetched for a later one; pinned until that has passed
    pinned: Vec<usize>,
    /// number of positions in a run
    n_positions: u32,
    /// current position of the run
    position: u32,
    budget: u64,
    resident_bytes: u64,
}

impl WeightCache {
    /// An empty cache.
    pub fn new(groups: Vec<WeightGroup>, budget: u64) -> Self {
        let n_positions = groups.iter().map(|group| group.position + 1).max().unwrap_or(1);
        let n = groups.len();
        let (is_resident, is_pinned, pinned) = (vec![false; n], vec![false; n], Vec::with_capacity(n));
        Self { groups, is_resident, is_pinned, pinned, n_positions, position: 0, budget, resident_bytes: 0 }
    }

    /// Bytes counted as being in memory.
    #[cfg(test)]
    fn resident_bytes(&self) -> u64 {
        self.resident_bytes
    }

    /// Position of a group in the run. None: there is no such group.
    pub fn position_of(&self, group: usize) -> Option<u32> {
        self.groups.get(group).map(|group| group.position)
    }

    /// Advances the run to `position` and unpins what was pinned for the positions passed.
    pub fn advance_to(&mut self, position: u32) {
        let ahead = |to: u32| (to + self.n_positions - self.position) % self.n_positions;
        let passed = ahead(position);
        let (groups, is_pinned) = (&self.groups, &mut self.is_pinned);
        self.pinned.retain(|group| {
            is_pinned[*group] = ahead(groups[*group].position) >= passed;
            is_pinned[*group]
        });
        self.position = position;
    }

    /// Requires a group now. Returns whether it must be loaded; `evict` is called with each group evicted for it.
    /// Exceeds the budget only by groups that are needed at the same time.
    pub fn require(&mut self, group: usize, evict: &mut dyn FnMut(usize)) -> bool {
        self.pin(group);
        if self.is_resident[group] {
            return false;
        }
        self.evict_for(self.groups[group].n_bytes, None, evict);
        self.mark_resident(group);
        true
    }

    /// Requests a group ahead of its use. Returns whether it must be loaded now: not if it is in memory already, nor if
    /// only groups needed sooner could be evicted for it.
    pub fn prefetch(&mut self, group: usize, evict: &mut dyn FnMut(usize)) -> bool {
        if self.is_resident[group] {
            self.pin(group);
            return false;
        }
        let until_use = self.distance_to_use(group);
        let fits = self.evict_for(self.groups[group].n_bytes, Some(until_use), evict);
        if fits {
            self.pin(group);
            self.mark_resident(group);
        }
        fits
    }

    /// Updates the use probabilities of a layer's experts (these groups) after a run chose some of them.
    pub fn record_routing(&mut self, experts: Range<usize>, is_chosen: &dyn Fn(usize) -> bool) {
        for (expert, group) in self.groups[experts].iter_mut().enumerate() {
            let now = if is_chosen(expert) { 1.0 } else { 0.0 };
            let updated = group.use_probability + (now - group.use_probability) * DECAY;
            group.use_probability = updated.max(MIN_USE_PROBABILITY);
        }
    }

    fn pin(&mut self, group: usize) {
        if !std::mem::replace(&mut self.is_pinned[group], true) {
            self.pinned.push(group);
        }
    }

    fn mark_resident(&mut self, group: usize) {
        self.is_resident[group] = true;
        self.resident_bytes += self.groups[group].n_bytes;
    }

    /// Evicts groups until `n_bytes` fit, the last needed first; never a pinned one, nor one that is needed within
    /// `until_use` positions. Returns whether they fit.
    fn evict_for(&mut self, n_bytes: u64, until_use: Option<f32>, evict: &mut dyn FnMut(usize)) -> bool {
        while self.resident_bytes + n_bytes > self.budget {
            let candidates = (0..self.groups.len()).filter(|i| self.is_resident[*i] && !self.is_pinned[*i]);
            let farthest =
                candidates.map(|i| (self.distance_to_use(i), i)).reduce(|a, b| if b.0 > a.0 { b } else { a });
            let is_later = |distance: f32| until_use.is_none_or(|until_use| distance > until_use);
            let Some((_, group)) = farthest.filter(|(distance, _)| is_later(*distance)) else {
                return false;
            };
            self.is_resident[group] = false;
            self.resident_bytes -= self.groups[group].n_bytes;
            evict(group);
        }
        true
    }

    /// Expected number of positions until a group is needed. Groups of the current position have just been used.
    fn distance_to_use(&self, group: usize) -> f32 {
        let WeightGroup { position, use_probability, .. } = self.groups[group];
        let n = self.n_positions;
        let next =
            if position > self.position { position - self.position } else { position + n - self.position };
        next as f32 + n as f32 * (1.0 / use_probability - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense(n: u32) -> Vec<WeightGroup> {
        (0..n).map(|position| WeightGroup { n_bytes: 10, position, use_probability: 1.0 }).collect()
    }

    /// Runs through all places; returns how many groups were loaded in.
    fn run(cache: &mut WeightCache, n: u32, ahead: u32, budget: u64) -> usize {
        let mut loaded = 0;
        for position in 0..n {
            cache.advance_to(position);
            loaded += usize::from(cache.require(position as usize, &mut |_| ()));
            for next in 1..=ahead {
                loaded += usize::from(cache.prefetch(((position + next) % n) as usize, &mut |_| ()));
            }
            assert!(
                cache.resident_bytes() <= budget.max(10),
                "{} bytes at {position}",
                cache.resident_bytes()
            );
        }
        loaded
    }

    #[test]
    fn of_a_dense_model_a_fixed_share_stays() {
        for (n, budget, ahead) in
            [(10, 50, 0), (10, 50, 2), (100, 550, 5), (7, 30, 1), (10, 10, 3), (10, 5, 0)]
        {
            let mut cache = WeightCache::new(dense(n), budget);
            run(&mut cache, n, ahead, budget);
            for _ in 0..20 {
                let loaded = run(&mut cache, n, ahead, budget);
                let may_stay = (budget / 10) as usize;
                // one position is for what comes and goes, and one more for each that is loaded in ahead
                let most = n as usize + 1 + ahead as usize - may_stay.min(n as usize);
                assert!(loaded <= most.min(n as usize), "{n} {budget} {ahead}: {loaded} of {most}");
            }
        }
    }

    #[test]
    fn what_fits_is_loaded_in_once() {
        let mut cache = WeightCache::new(dense(8), 80);
        assert_eq!(run(&mut cache, 8, 2, 80), 8);
        assert_eq!((0..9).map(|_| run(&mut cache, 8, 2, 80)).sum::<usize>(), 0);
        assert_eq!(cache.resident_bytes(), 80);
    }

    #[test]
    fn what_a_run_needs_at_once_is_all_there() {
        let groups = vec![WeightGroup { n_bytes: 10, position: 0, use_probability: 0.5 }; 4];
        let mut cache = WeightCache::new(groups, 20);
        let mut evicted = Vec::new();
        cache.advance_to(0);
        (0..4).for_each(|group| _ = cache.require(group, &mut |group| evicted.push(group)));
        assert_eq!(
            (cache.resident_bytes(), evicted.len()),
            (40, 0),
            "held together, though beyond the budget"
        );
        let mut cache = WeightCache::new(
            [dense(1), vec![WeightGroup { n_bytes: 10, position: 1, use_probability: 0.5 }; 4]].concat(),
            20,
        );
        cache.advance_to(1);
        (1..5).for_each(|group| _ = cache.require(group, &mut |group| evicted.push(group)));
        cache.advance_to(0);
        assert!(cache.require(0, &mut |group| evicted.push(group)));
        assert_eq!((cache.resident_bytes(), evicted.len()), (20, 3), "and the budget holds again");
    }

    /// Experts are chosen by a made-up rule: low numbers far more often.
    #[test]
    fn experts_in_favour_stay() {
        let (n_layers, n_experts) = (4usize, 16usize);
        let group = |position: usize, use_probability| WeightGroup {
            n_bytes: 10,
            position: position as u32,
            use_probability,
        };
        let mut groups = Vec::new();
        for layer in 0..n_layers {
            groups.push(group(2 * layer, 1.0));
            groups.extend(vec![group(2 * layer + 1, 1.0 / 16.0); n_experts]);
        }
        // room for the dense groups and four experts of each layer
        let budget = 10 * (n_layers + 4 * n_layers) as u64;
        let mut cache = WeightCache::new(groups, budget);
        let mut seed = 1u64;
        let (mut asked, mut missed, mut dense_missed) = (0, 0, 0);
        for round in 0..2000 {
            for layer in 0..n_layers {
                let first = layer * (n_experts + 1);
                cache.advance_to(2 * layer as u32);
                let loaded = cache.require(first, &mut |_| ());
                cache.advance_to(2 * layer as u32 + 1);
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let draw = (seed >> 33) % 100;
                let chosen = if draw < 90 { draw as usize % 3 } else { draw as usize % n_experts };
                cache.record_routing(first + 1..first + 1 + n_experts, &|expert| expert == chosen);
                let missing = cache.require(first + 1 + chosen, &mut |_| ());
                if round >= 200 {
                    (asked, missed) = (asked + 1, missed + usize::from(missing));
                    dense_missed += usize::from(loaded);
                }
                assert!(cache.resident_bytes() <= budget);
            }
        }
        assert_eq!(dense_missed, 0, "what every token needs stays before any expert");
        assert!(missed * 100 < asked * 12, "{missed} of {asked} were not there");
    }
}
