//! Which replica of the model has a sequence. Pages and slots are numbered once for all replicas, each of which has room
//! for all of them: what a number stands for is there where a sequence that holds it is at home. So a sequence can move
//! to any other replica, and forks on different ones may share numbers.

use std::collections::BTreeMap;

use super::{KvCache, SequenceId};
use crate::error::Result;

impl KvCache {
    /// From here on there are so many replicas.
    pub fn spread_over(&mut self, n_homes: usize) {
        assert!(n_homes > 0 && self.sequences.is_empty(), "replicas are made before sequences are");
        self.n_homes = n_homes;
    }

    /// Counted from 0.
    pub fn home(&self, id: SequenceId) -> Result<usize> {
        Ok(self.get(id)?.home)
    }

    /// Where the next sequence will be: where fewest live.
    pub fn next_home(&self) -> usize {
        let n_at = |home: usize| self.sequences.values().filter(|sequence| sequence.home == home).count();
        (0..self.n_homes).min_by_key(|home| n_at(*home)).unwrap_or(0)
    }

    /// It is there from here on; whoever calls has brought what it holds.
    pub fn set_home(&mut self, id: SequenceId, home: usize) {
        assert!(home < self.n_homes, "there is such a replica");
        self.sequences.get_mut(&id).into_iter().for_each(|sequence| sequence.home = home);
    }

    /// A replica is no more, what was there is lost; the numbers of those after it are one less. Its sequences go to the
    /// others, those that share pages to one, so that these are read once.
    pub fn leave(&mut self, home: usize) {
        assert!(self.n_homes > 1 && home < self.n_homes, "one of several");
        self.n_homes -= 1;
        let mut left: Vec<SequenceId> = Vec::new();
        for (id, sequence) in &mut self.sequences {
            if sequence.home == home {
                sequence.home = usize::MAX;
                left.push(*id);
            } else if sequence.home > home {
                sequence.home -= 1;
            }
        }
        let mut groups: BTreeMap<u32, usize> = BTreeMap::new();
        for id in left {
            let first = self.sequences.get(&id).and_then(|sequence| sequence.pages.get(0));
            let next = self.next_home();
            let to = first.map_or(next, |page| *groups.entry(page).or_insert(next));
            self.set_home(id, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::full;
    use super::*;

    #[test]
    fn sequences_are_spread_and_move_together_when_a_replica_goes() {
        let mut cache = full(16, 4);
        cache.spread_over(3);
        let ids: Vec<SequenceId> = (0..4).map(|_| cache.create().unwrap()).collect();
        let homes = |cache: &KvCache, ids: &[SequenceId]| -> Vec<usize> {
            ids.iter().map(|id| cache.home(*id).unwrap()).collect()
        };
        assert_eq!(homes(&cache, &ids), [0, 1, 2, 0]);
        cache.free(ids[3]);
        let held: Vec<u32> = (0..5).collect();
        for id in &ids[..3] {
            cache.reserve(*id, held.len()).unwrap();
            cache.commit(*id, &held).unwrap();
        }
        let twin = cache.fork(ids[1]).unwrap();
        assert_eq!(homes(&cache, &[twin]), [1], "what it shares is there");
        cache.lose(1, &[(ids[1], 4)]);
        cache.leave(1);
        assert_eq!(homes(&cache, &[ids[0], ids[2]]), [0, 1], "those after it have other numbers");
        let moved = homes(&cache, &[ids[1], twin]);
        assert_eq!(moved[0], moved[1], "what they share is read once");
        let lost: Vec<bool> = ids[..3].iter().chain([&twin]).map(|id| cache.is_lost(*id)).collect();
        assert_eq!(lost, [false, true, false, true]);
        assert_eq!((cache.tokens(ids[1]).unwrap().len(), cache.tokens(twin).unwrap().len()), (4, 5));
        cache.lose(0, &[]);
        cache.leave(0);
        assert_eq!(homes(&cache, &[ids[0], ids[1], ids[2], twin]), [0; 4]);
        cache.clear();
        assert_eq!(cache.next_home(), 0);
    }
}
