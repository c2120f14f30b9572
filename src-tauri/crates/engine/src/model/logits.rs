//! Output of a batch: the selected logits, or only the most likely tokens of each row.

use kernels::TopKEntry;

use crate::error::{EngineError, Result};

/// Selected logits, ordered by chunk and token.
#[derive(Debug, Clone, Copy)]
pub struct Logits<'a> {
    pub(super) data: &'a [f32], // (rows, width)
    pub(super) width: usize,
    /// Most likely tokens per row, if they were requested instead of rows. (rows, n_top)
    pub(super) likeliest: &'a [TopKEntry],
    pub(super) n_top: Option<usize>,
    /// (rows, d_model) of a model with a draft block; else empty
    pub(super) hidden: &'a [f32],
    pub(super) d_model: usize,
}

/// What the next token is sampled from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LogitsRow<'a> {
    /// (n_vocab)
    Whole(&'a [f32]),
    /// Most likely first.
    Likeliest(&'a [TopKEntry]),
}

impl<'a> Logits<'a> {
    /// Returns the number of rows.
    pub fn n_rows(&self) -> usize {
        self.data.len() / self.width
    }

    /// Returns the logits of one row. (n_vocab)
    ///
    /// Errors: `model.nan_logits` if a value is not finite.
    pub fn row(&self, row: usize) -> Result<&'a [f32]> {
        let row = &self.data[row * self.width..(row + 1) * self.width];
        if row.iter().any(|logit| !logit.is_finite()) {
            return Err(nan_logits());
        }
        Ok(row)
    }

    /// Returns the hidden state after the output norm that one row was computed from, where the model has a draft block.
    /// (d_model)
    pub fn hidden(&self, row: usize) -> Option<&'a [f32]> {
        self.hidden.get(row * self.d_model..(row + 1) * self.d_model)
    }

    /// Returns one row, or its most likely tokens. Errors as `row`.
    pub(crate) fn candidates(&self, row: usize) -> Result<LogitsRow<'a>> {
        let Some(n) = self.n_top else { return self.row(row).map(LogitsRow::Whole) };
        let likeliest = &self.likeliest[row * n..(row + 1) * n];
        // Non-finite values come first.
        match likeliest.first().is_some_and(|likely| likely.logit.is_finite()) {
            true => Ok(LogitsRow::Likeliest(likeliest)),
            false => Err(nan_logits()),
        }
    }
}

pub(crate) fn nan_logits() -> EngineError {
    EngineError::new(
        "model.nan_logits",
        "the model's output contains values that are not numbers",
        "The weights are damaged: download the model again.",
    )
}
