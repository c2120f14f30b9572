//! Progress of one batch: which tokens of each chunk have run, and where their logits go.

use super::{Chunk, LogitsSelection, MAX_BATCH_SEQUENCES};
use crate::error::Result;
use crate::kv::cache::KvCache;
use crate::kv::sequence_id::SequenceId;

pub(super) struct BatchProgress<'a> {
    pub batch: &'a [Chunk<'a>],
    /// Tokens that each sequence held before.
    pub n_before: [usize; MAX_BATCH_SEQUENCES],
    /// Tokens of each chunk that have run or are about to.
    pub n_taken: [usize; MAX_BATCH_SEQUENCES],
    /// First row of logits of each chunk.
    first_row: [usize; MAX_BATCH_SEQUENCES],
    /// Rows of logits in total.
    pub n_rows: usize,
    /// Whether the logits come from several runs.
    pub is_gathered: bool,
    /// Position from which tokens belong to the second text of a pair.
    pub second_text: usize,
}

impl<'a> BatchProgress<'a> {
    pub fn of(batch: &'a [Chunk<'a>], cache: &KvCache, second_text: Option<usize>) -> Result<Self> {
        let second_text = second_text.unwrap_or(usize::MAX);
        let zeros = [0; MAX_BATCH_SEQUENCES];
        let (n_before, n_taken, first_row) = (zeros, zeros, zeros);
        let mut pass =
            Self { batch, n_before, n_taken, first_row, n_rows: 0, is_gathered: false, second_text };
        for (index, chunk) in batch.iter().enumerate() {
            pass.n_before[index] = cache.tokens(chunk.seq)?.len();
            pass.first_row[index] = pass.n_rows;
            pass.n_rows += n_wanted(chunk);
        }
        Ok(pass)
    }

    /// Resets to what the cache holds, after a run that failed.
    pub fn begin(&mut self, cache: &KvCache) -> Result<()> {
        for (index, chunk) in self.batch.iter().enumerate() {
            self.n_taken[index] = cache.tokens(chunk.seq)?.len().saturating_sub(self.n_before[index]);
        }
        Ok(())
    }

    pub fn is_taken(&self, index: usize) -> bool {
        self.n_taken[index] == self.batch[index].tokens.len()
    }

    pub fn is_all_taken(&self) -> bool {
        (0..self.batch.len()).all(|index| self.is_taken(index))
    }

    /// Returns the row of logits of a chunk's next token, if it was selected.
    pub fn output_row(&self, index: usize) -> Option<usize> {
        let chunk = &self.batch[index];
        let first = chunk.tokens.len() - n_wanted(chunk);
        Some(self.first_row[index] + self.n_taken[index].checked_sub(first)?)
    }

    /// Returns the sequences of a replica and their lengths before the batch.
    pub fn at(&self, replica: usize, cache: &KvCache) -> Vec<(SequenceId, usize)> {
        let all = self.batch.iter().map(|chunk| chunk.seq).zip(self.n_before);
        all.filter(|(seq, _)| cache.replica_of(*seq).is_ok_and(|at| at == replica)).collect()
    }
}

fn n_wanted(chunk: &Chunk<'_>) -> usize {
    match chunk.logits {
        LogitsSelection::None => 0,
        LogitsSelection::Last => chunk.tokens.len().min(1),
        LogitsSelection::Tail(n) => n.min(chunk.tokens.len()),
        LogitsSelection::All => chunk.tokens.len(),
    }
}
