//! The input of one run: tokens, positions, and where their sequences' pages and states lie.

use crate::capacity::Capacity;
use crate::error::KernelError;
use crate::graph::{Graph, Mask, PAGE_LEN, Retention, Rows};

mod given;
mod state_slots;

pub use given::GivenRows;
pub(crate) use state_slots::StateSlots;

/// Rows of one run, in any mixture of sequences, prefill and decode.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// (rows) token ids
    pub tokens: &'a [u32],
    /// (rows) absolute position of each token in its sequence
    pub positions: &'a [u32],
    /// (rows) kind of each token, a row of the graph's table of kinds; empty: 0 everywhere
    pub kinds: &'a [u32],
    /// rows that are of images
    pub given: GivenRows<'a>,
    /// (rows) index into `page_tables`
    pub sequence: &'a [u32],
    /// per sequence, its pages in order of position, for layers that retain all positions; covers the row's position
    pub page_tables: &'a [&'a [u32]],
    /// As `page_tables`, for layers with a sliding window, with `NO_PAGE` where no row's window reaches. Empty if the
    /// graph has no such layer.
    pub window_tables: &'a [&'a [u32]],
    /// Per sequence, the slot of its recurrent state, which the batch advances; empty if the graph has none.
    /// A row at position 0 starts from a zero state; rows of a sequence must be in order of position.
    pub states: &'a [u32],
    /// rows whose logits are computed, strictly increasing; may be empty
    pub outputs: &'a [u32],
}

impl Batch<'_> {
    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.tokens.len()
    }

    /// Number of rows that a value of this kind has in the batch.
    pub fn rows(&self, rows: Rows) -> usize {
        match rows {
            Rows::Tokens => self.tokens.len(),
            Rows::Outputs => self.outputs.len(),
        }
    }

    /// The page table of a row's sequence, for layers with this retention.
    pub fn table(&self, retention: Retention, row: usize) -> &[u32] {
        let tables = match retention {
            Retention::All => self.page_tables,
            Retention::Window => self.window_tables,
        };
        tables[self.sequence[row] as usize]
    }

    /// The page, and the position within it, where a row's key and value are stored.
    pub fn slot(&self, retention: Retention, row: usize) -> (u32, usize) {
        let position = self.positions[row] as usize;
        (self.table(retention, row)[position / PAGE_LEN], position % PAGE_LEN)
    }

    /// (rows) length of each row's sequence after the batch.
    pub fn ends(&self) -> Vec<usize> {
        let mut of_sequences = vec![0; self.page_tables.len()];
        for (position, sequence) in self.positions.iter().zip(self.sequence) {
            let end = &mut of_sequences[*sequence as usize];
            *end = (*position as usize + 1).max(*end);
        }
        self.sequence.iter().map(|sequence| of_sequences[*sequence as usize]).collect()
    }

    /// (rows) what `attention::visible` takes as each row's end under this mask: of its sequence after the batch, or of
    /// its image. Empty for causal attention, which needs none.
    pub fn ends_for(&self, mask: Mask) -> Vec<usize> {
        match mask {
            Mask::Causal | Mask::CausalAfterFirst => Vec::new(),
            Mask::CausalImages => self.given.image_ends.iter().map(|end| *end as usize).collect(),
            Mask::Bidirectional => self.ends(),
        }
    }

    /// The slot of the recurrent state that a row advances.
    pub fn state(&self, row: usize) -> u32 {
        self.states[self.sequence[row] as usize]
    }

    /// Checks the batch against graph and capacity. Errors: anything that would read or write out of bounds.
    pub(crate) fn check(
        &self,
        graph: &Graph,
        capacity: &Capacity,
        slots: &mut StateSlots,
    ) -> Result<(), KernelError> {
        let fail = |what, found, limit| Err(KernelError::Batch { what, found, limit });
        let n = self.tokens.len();
        if n == 0 || n > capacity.max_rows {
            return fail("rows", n, capacity.max_rows);
        }
        if self.positions.len() != n || self.sequence.len() != n {
            return fail("positions or sequences", self.positions.len().min(self.sequence.len()), n);
        }
        if self.outputs.len() > capacity.max_outputs {
            return fail("output rows", self.outputs.len(), capacity.max_outputs);
        }
        for row in 0..n {
            if self.tokens[row] as usize >= graph.n_vocab_in() {
                return fail("token id", self.tokens[row] as usize, graph.n_vocab_in());
            }
            let sequence = self.sequence[row] as usize;
            let Some(table) = self.page_tables.get(sequence) else {
                return fail("sequence", sequence, self.page_tables.len());
            };
            let last_page = self.positions[row] as usize / PAGE_LEN;
            let Some(page) = table.get(last_page) else {
                return fail("position", self.positions[row] as usize, table.len() * PAGE_LEN);
            };
            // requantized pages are read-only
            if *page as usize >= capacity.n_pages {
                return fail("page to write", *page as usize, capacity.n_pages);
            }
        }
        self.check_windows(graph, capacity)?;
        if let Some(n_positions) = graph.n_positions()
            && let Some(position) = self.positions.iter().find(|p| **p as usize >= n_positions)
        {
            return fail("position in a table of learned positions", *position as usize, n_positions);
        }
        if !self.kinds.is_empty() && self.kinds.len() != n {
            return fail("kinds", self.kinds.len(), n);
        }
        let n_kinds = graph.n_kinds().unwrap_or(1);
        if let Some(kind) = self.kinds.iter().find(|kind| **kind as usize >= n_kinds) {
            return fail("kind of a token", *kind as usize, n_kinds);
        }
        slots.check(self, graph)?;
        self.given.check(self, graph)?;
        for page in self.page_tables.iter().copied().flatten() {
            if *page as usize >= capacity.all_pages(Retention::All) {
                return fail("page", *page as usize, capacity.all_pages(Retention::All));
            }
        }
        let n_merged = graph.n_merged_rows();
        for (i, row) in self.outputs.iter().enumerate() {
            if *row as usize + n_merged > n || (i > 0 && self.outputs[i - 1] >= *row) {
                return fail("output row", *row as usize, n);
            }
        }
        Ok(())
    }

    /// Checks that every page within a sliding window exists.
    fn check_windows(&self, graph: &Graph, capacity: &Capacity) -> Result<(), KernelError> {
        let fail = |what, found, limit| Err(KernelError::Batch { what, found, limit });
        let Some(window) = graph.kv().window() else { return Ok(()) };
        if self.window_tables.len() != self.page_tables.len() {
            return fail("page tables of windows", self.window_tables.len(), self.page_tables.len());
        }
        for row in 0..self.n_rows() {
            let (table, position) = (self.table(Retention::Window, row), self.positions[row] as usize);
            let first = (position + 1).saturating_sub(window) / PAGE_LEN;
            for index in first..=position / PAGE_LEN {
                match table.get(index) {
                    Some(page) if (*page as usize) < capacity.n_window_pages => {}
                    Some(page) => return fail("page of a window", *page as usize, capacity.n_window_pages),
                    None => return fail("position in a window", position, table.len() * PAGE_LEN),
                }
            }
        }
        Ok(())
    }
}
