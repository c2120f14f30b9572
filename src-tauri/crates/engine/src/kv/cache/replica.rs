//! Assignment of sequences to replicas of the model.
//!
//! Pages and slots are numbered once for all replicas, and each replica has space for all of them. The content of a
//! number lives on the replica of the sequence that holds it, so sequences can move and forks on different replicas
//! may share numbers.

use std::collections::BTreeMap;

use super::{KvCache, SequenceId};
use crate::error::Result;

impl KvCache {
    /// Sets the number of replicas, before any sequence exists.
    pub fn set_n_replicas(&mut self, n_replicas: usize) {
        assert!(n_replicas > 0 && self.sequences.is_empty(), "replicas are added before sequences");
        self.n_replicas = n_replicas;
    }

    /// Returns the replica of a sequence, counted from 0.
    pub fn replica_of(&self, id: SequenceId) -> Result<usize> {
        Ok(self.get(id)?.replica)
    }

    /// Returns the replica for the next sequence: the one with the fewest.
    pub fn next_replica(&self) -> usize {
        let n_at =
            |replica: usize| self.sequences.values().filter(|sequence| sequence.replica == replica).count();
        (0..self.n_replicas).min_by_key(|replica| n_at(*replica)).unwrap_or(0)
    }

    /// Assigns a sequence to a replica. The caller has copied its content there.
    pub fn set_replica(&mut self, id: SequenceId, replica: usize) {
        assert!(replica < self.n_replicas, "the replica exists");
        self.sequences.get_mut(&id).into_iter().for_each(|sequence| sequence.replica = replica);
    }

    /// Removes a replica and renumbers those after it. Its sequences are lost and move to the others; sequences that
    /// share pages stay together, so that these are recomputed once.
    pub fn remove_replica(&mut self, replica: usize) {
        assert!(self.n_replicas > 1 && replica < self.n_replicas, "one of several");
        self.n_replicas -= 1;
        let mut left: Vec<SequenceId> = Vec::new();
        for (id, sequence) in &mut self.sequences {
            if sequence.replica == replica {
                sequence.replica = usize::MAX;
                left.push(*id);
            } else if sequence.replica > replica {
                sequence.replica -= 1;
            }
        }
        let mut groups: BTreeMap<u32, usize> = BTreeMap::new();
        for id in left {
            let first = self.sequences.get(&id).and_then(|sequence| sequence.pages.get(0));
            let next = self.next_replica();
            let to = first.map_or(next, |page| *groups.entry(page).or_insert(next));
            self.set_replica(id, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::full;
    use super::*;

    #[test]
    fn sequences_spread_over_replicas_and_move_together_when_one_is_dropped() {
        let mut cache = full(16, 4);
        cache.set_n_replicas(3);
        let ids: Vec<SequenceId> = (0..4).map(|_| cache.create().unwrap()).collect();
        let replicas = |cache: &KvCache, ids: &[SequenceId]| -> Vec<usize> {
            ids.iter().map(|id| cache.replica_of(*id).unwrap()).collect()
        };
        assert_eq!(replicas(&cache, &ids), [0, 1, 2, 0]);
        cache.free(ids[3]);
        let held: Vec<u32> = (0..5).collect();
        for id in &ids[..3] {
            cache.reserve(*id, held.len()).unwrap();
            cache.commit(*id, &held).unwrap();
        }
        let forked = cache.fork(ids[1]).unwrap();
        assert_eq!(replicas(&cache, &[forked]), [1], "shared pages are there");
        cache.mark_lost(1, &[(ids[1], 4)]);
        cache.remove_replica(1);
        assert_eq!(replicas(&cache, &[ids[0], ids[2]]), [0, 1], "those after it have other numbers");
        let moved = replicas(&cache, &[ids[1], forked]);
        assert_eq!(moved[0], moved[1], "what they share is read once");
        let lost: Vec<bool> = ids[..3].iter().chain([&forked]).map(|id| cache.is_lost(*id)).collect();
        assert_eq!(lost, [false, true, false, true]);
        assert_eq!((cache.tokens(ids[1]).unwrap().len(), cache.tokens(forked).unwrap().len()), (4, 5));
        cache.mark_lost(0, &[]);
        cache.remove_replica(0);
        assert_eq!(replicas(&cache, &[ids[0], ids[1], ids[2], forked]), [0; 4]);
        cache.clear();
        assert_eq!(cache.next_replica(), 0);
    }
}
