//! Contexts that age when they would have to leave memory otherwise.

use super::Model;
use super::forward::turn;
use super::replica::Fault;
use crate::error::Result;
use crate::kv::aging::{Aged, Aging};
use crate::kv::cache::SequenceId;
use crate::kv::snapshot::STRETCH;

impl Model {
    /// Where contexts age under pressure: the oldest stretch of the one that has most of them, and with that less is
    /// held than before. False: contexts don't age, or nothing would be saved.
    pub fn age_some(&mut self) -> bool {
        match self.info.kv_aging {
            Aging::Off | Aging::After(_) => return false,
            Aging::Pressure => {}
        }
        let Some(aged) = self.cache.age_one() else { return false };
        if let Err(Fault { at, error }) = turn(&mut self.replicas, &aged) {
            // what a card took with it is read again; kernels of the CPU copy without error: were it otherwise, what
            // is held would be lost
            if !error.is_of_gpu() || self.recover(error, at, &[]).is_err() {
                self.cache.clear();
                return false;
            }
        }
        for page in aged.given_up {
            // one that stays only takes memory
            self.replicas.iter_mut().for_each(|replica| _ = replica.executor.kv_let_go(page));
        }
        true
    }

    /// Bytes of keys and values that a token at `position` reads, in layers that keep all of them, where they age by
    /// length.
    pub fn kv_bytes_at(&self, position: usize) -> u64 {
        let n_aged = self.info.kv_aging.due(position) * STRETCH;
        let bytes = |n: usize, page: u64| n as u64 * page / kernels::PAGE_LEN as u64;
        bytes(position - n_aged, self.identity.bytes.page) + bytes(n_aged, self.identity.bytes.aged_page)
    }

    /// The first `n` tokens of a sequence are as its length alone would have them, or contexts age under pressure.
    pub fn is_on_time(&self, seq: SequenceId, n: usize) -> bool {
        let when = self.info.kv_aging;
        let on_time = |aged: &Aged| {
            let at = aged.at(n);
            at.seen == Aged::on_time(when, n).seen && at.n <= when.due(n)
        };
        when == Aging::Pressure || self.cache.aged(seq).is_ok_and(on_time)
    }

    /// Stretches of a sequence that have aged.
    pub fn n_aged(&self, seq: SequenceId) -> Result<usize> {
        Ok(self.cache.aged(seq)?.n)
    }

    /// Tokens that a sequence may take at once without another part of it ageing between them.
    pub fn n_until_aging(&self, seq: SequenceId) -> usize {
        match (self.info.kv_aging, self.len(seq)) {
            (Aging::After(_), Ok(n)) => STRETCH - n % STRETCH,
            (Aging::After(_) | Aging::Off | Aging::Pressure, _) => usize::MAX,
        }
    }
}
