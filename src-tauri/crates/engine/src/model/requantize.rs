//! Contexts that age when they would have to leave memory otherwise.

use super::Model;
use super::forward::turn;
use super::replica::ReplicaFault;
use crate::error::Result;
use crate::kv::CHECKPOINT_CHUNK_TOKENS;
use crate::kv::requantize::{KvRequantize, Requantized};
use crate::kv::sequence_id::SequenceId;

impl Model {
    /// Where contexts age under pressure: the oldest stretch of the one that has most of them, and with that less is
    /// held than before. False: contexts don't age, or nothing would be saved.
    pub fn requantize_some(&mut self) -> bool {
        match self.info.kv_requantize {
            KvRequantize::Off | KvRequantize::After(_) => return false,
            KvRequantize::Pressure => {}
        }
        let Some(aged) = self.cache.requantize_one() else { return false };
        if let Err(ReplicaFault { at, error }) = turn(&mut self.replicas, &aged) {
            // what a card took with it is read again; kernels of the CPU copy without error: were it otherwise, what
            // is held would be lost
            if !error.is_of_gpu() || self.recover(error, at, &[]).is_err() {
                self.cache.clear();
                return false;
            }
        }
        for page in aged.given_up {
            // one that stays only takes memory
            self.replicas.iter_mut().for_each(|replica| _ = replica.executor.release_kv_page(page));
        }
        true
    }

    /// Bytes of keys and values that a token at `position` reads, in layers that keep all of them, where they age by
    /// length.
    pub fn kv_bytes_at(&self, position: usize) -> u64 {
        let n_requantized = self.info.kv_requantize.due(position) * CHECKPOINT_CHUNK_TOKENS;
        let bytes = |n: usize, page: u64| n as u64 * page / kernels::PAGE_LEN as u64;
        bytes(position - n_requantized, self.identity.bytes.page)
            + bytes(n_requantized, self.identity.bytes.requantized_page)
    }

    /// The first `n` tokens of a sequence are as its length alone would have them, or contexts age under pressure.
    pub fn is_requantized_by_length(&self, seq: SequenceId, n: usize) -> bool {
        let when = self.info.kv_requantize;
        let by_length = |aged: &Requantized| {
            let at = aged.at(n);
            at.views == Requantized::by_length(when, n).views && at.n_chunks <= when.due(n)
        };
        when == KvRequantize::Pressure || self.cache.aged(seq).is_ok_and(by_length)
    }

    /// Stretches of a sequence that have aged.
    pub fn n_requantized(&self, seq: SequenceId) -> Result<usize> {
        Ok(self.cache.aged(seq)?.n_chunks)
    }

    /// Tokens that a sequence may take at once without another part of it ageing between them.
    pub fn n_until_requantize(&self, seq: SequenceId) -> usize {
        match (self.info.kv_requantize, self.len(seq)) {
            (KvRequantize::After(_), Ok(n)) => CHECKPOINT_CHUNK_TOKENS - n % CHECKPOINT_CHUNK_TOKENS,
            (KvRequantize::After(_) | KvRequantize::Off | KvRequantize::Pressure, _) => usize::MAX,
        }
    }
}
