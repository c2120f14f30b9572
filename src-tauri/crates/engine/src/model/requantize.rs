//! Requantizes contexts that would otherwise have to leave memory.

use super::Model;
use super::forward::requantize_pages;
use super::replica::ReplicaFault;
use crate::error::Result;
use crate::kv::CHECKPOINT_CHUNK_TOKENS;
use crate::kv::requantize::{KvRequantize, Requantized};
use crate::kv::sequence_id::SequenceId;

impl Model {
    /// Under memory pressure, requantizes the next chunk of the sequence with the most exact ones. Returns false if
    /// nothing would be saved, or in another mode.
    pub fn requantize_some(&mut self) -> bool {
        match self.info.kv_requantize {
            KvRequantize::Off | KvRequantize::After(_) => return false,
            KvRequantize::Pressure => {}
        }
        let Some(requantized) = self.cache.requantize_one() else { return false };
        if let Err(ReplicaFault { at, error }) = requantize_pages(&mut self.replicas, &requantized) {
            // A GPU's loss is replayed. CPU kernels copy without errors; if they did fail, the content would be lost.
            if !error.is_of_gpu() || self.recover(error, at, &[]).is_err() {
                self.cache.clear();
                return false;
            }
        }
        for page in requantized.released {
            // A page that is not released only costs memory.
            self.replicas.iter_mut().for_each(|replica| _ = replica.executor.release_kv_page(page));
        }
        true
    }

    /// Returns the bytes of keys and values that a token at `position` reads in full-attention layers, with
    /// requantization by length.
    pub fn kv_bytes_at(&self, position: usize) -> u64 {
        let n_requantized = self.info.kv_requantize.due(position) * CHECKPOINT_CHUNK_TOKENS;
        let bytes = |n: usize, page: u64| n as u64 * page / kernels::PAGE_LEN as u64;
        bytes(position - n_requantized, self.identity.bytes.page)
            + bytes(n_requantized, self.identity.bytes.requantized_page)
    }

    /// Returns whether the first `n` tokens are requantized as their length alone demands. True under pressure.
    pub fn is_requantized_by_length(&self, seq: SequenceId, n: usize) -> bool {
        let when = self.info.kv_requantize;
        let by_length = |requantized: &Requantized| {
            let at = requantized.at(n);
            at.views == Requantized::by_length(when, n).views && at.n_chunks <= when.due(n)
        };
        when == KvRequantize::Pressure || self.cache.requantized(seq).is_ok_and(by_length)
    }

    /// Returns how many chunks of a sequence are requantized.
    pub fn n_requantized(&self, seq: SequenceId) -> Result<usize> {
        Ok(self.cache.requantized(seq)?.n_chunks)
    }

    /// Returns how many tokens a sequence can take before more of it is requantized.
    pub fn n_until_requantize(&self, seq: SequenceId) -> usize {
        match (self.info.kv_requantize, self.len(seq)) {
            (KvRequantize::After(_), Ok(n)) => CHECKPOINT_CHUNK_TOKENS - n % CHECKPOINT_CHUNK_TOKENS,
            (KvRequantize::After(_) | KvRequantize::Off | KvRequantize::Pressure, _) => usize::MAX,
        }
    }
}
