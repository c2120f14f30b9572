//! Fills a deep context without computing it, for benchmarks.

use kernels::{PAGE_LEN, Retention};

use super::Model;
use super::forward::requantize_pages;
use crate::TokenId;
use crate::error::{EngineError, Result};
use crate::kv::sequence_id::SequenceId;

impl Model {
    /// Extends a sequence to `n` tokens with copies of its pages: as many bytes to read as real ones, but meaningless
    /// answers.
    ///
    /// Errors: `kv.fill` without whole pages to copy, `request.context_full`.
    pub fn fill_with_copies(&mut self, seq: SequenceId, n: usize) -> Result<()> {
        let Self { cache, replicas, .. } = self;
        let n_held = cache.tokens(seq)?.len();
        let n_runs_pages = cache.geometry().max_rows / PAGE_LEN;
        if n_held == 0 || !n_held.is_multiple_of(PAGE_LEN) || n_runs_pages == 0 {
            return Err(EngineError::new(
                "kv.fill",
                format!(
                    "{n_held} tokens in runs of {} do not fill whole pages to copy",
                    cache.geometry().max_rows
                ),
                format!("Compute a multiple of {PAGE_LEN} tokens first."),
            ));
        }
        cache.check_fits(seq, n.saturating_sub(n_held))?;
        let tokens: Vec<TokenId> = cache.tokens(seq)?.to_vec();
        let n_pages = n_held / PAGE_LEN;
        let mut at = n_held;
        while at < n {
            let step = (n - at).min(n_runs_pages * PAGE_LEN);
            let requantized = cache.requantize_due(seq)?;
            requantize_pages(replicas, &requantized).map_err(|fault| fault.error)?;
            let executor = &mut replicas[cache.replica_of(seq)?].executor;
            cache.reserve(seq, step)?;
            for index in at / PAGE_LEN..(at + step).div_ceil(PAGE_LEN) {
                let pages = cache.pages(seq)?;
                // A computed page may have been requantized.
                let (from, to) = (pages[index % n_pages], pages[index]);
                match (from as usize) < executor.capacity().n_pages {
                    true => executor.copy_kv_page(Retention::All, from, to)?,
                    false => executor.copy_kv_page(Retention::All, pages[index - 1], to)?,
                }
                let window = cache.window_pages(seq)?;
                let from = window.get(index - n_pages).or(window.get(index - 1));
                if let (Some(from), Some(to)) = (from, window.get(index)) {
                    executor.copy_kv_page(Retention::Window, from, to)?;
                }
            }
            let copied: Vec<TokenId> = (at..at + step).map(|position| tokens[position % n_held]).collect();
            cache.commit(seq, &copied)?;
            at += step;
        }
        Ok(())
    }
}
