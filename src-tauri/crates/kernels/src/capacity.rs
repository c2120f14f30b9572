//! Memory limits of an executor: KV pages, recurrent states, and the largest batch.

use crate::graph::Retention;

/// What an [`Executor`](crate::Executor) allocates memory for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// KV pages of `PAGE_LEN` tokens for the layers that retain all positions, shared by all sequences
    pub n_pages: usize,
    /// requantized pages of the same layers, numbered after `n_pages`: see `KvLayerLayout::requantized`
    pub n_requantized_pages: usize,
    /// KV pages for the layers with a sliding window
    pub n_window_pages: usize,
    /// largest number of tokens in one batch
    pub max_rows: usize,
    /// largest number of logits rows from one batch; each costs n_vocab floats
    pub max_outputs: usize,
    /// slots of recurrent state; each holds the states of all recurrent layers for one sequence
    pub n_states: usize,
}

impl Capacity {
    /// Number of pages of layers with this retention, requantized ones included.
    pub fn all_pages(&self, retention: Retention) -> usize {
        match retention {
            Retention::All => self.n_pages + self.n_requantized_pages,
            Retention::Window => self.n_window_pages,
        }
    }

    /// Number of pages that are written token by token.
    pub fn pages(&self, retention: Retention) -> usize {
        match retention {
            Retention::All => self.n_pages,
            Retention::Window => self.n_window_pages,
        }
    }
}
