//! What a batch leaves: the logits that were wanted, or only the likeliest of them.

use kernels::TopKEntry;

use crate::error::{EngineError, Result};

/// LogitsSelection logits, in the order of the chunks and of their tokens.
#[derive(Debug, Clone, Copy)]
pub struct Logits<'a> {
    pub(super) data: &'a [f32], // (rows, width)
    pub(super) width: usize,
    /// in place of rows, where so many were asked for: (rows, n_top)
    pub(super) likeliest: &'a [TopKEntry],
    pub(super) n_top: Option<usize>,
}

/// What the next token is drawn from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LogitsRow<'a> {
    /// (n_vocab)
    Whole(&'a [f32]),
    /// likeliest first
    Likeliest(&'a [TopKEntry]),
}

impl<'a> Logits<'a> {
    pub fn n_rows(&self) -> usize {
        self.data.len() / self.width
    }

    /// The logits of one wanted row (n_vocab). Error `model.nan_logits`: a value is not a finite number.
    pub fn row(&self, row: usize) -> Result<&'a [f32]> {
        let row = &self.data[row * self.width..(row + 1) * self.width];
        if row.iter().any(|logit| !logit.is_finite()) {
            return Err(nan_logits());
        }
        Ok(row)
    }

    /// One wanted row, or what was asked for in its place. Error as of `row`.
    pub(crate) fn candidates(&self, row: usize) -> Result<LogitsRow<'a>> {
        let Some(n) = self.n_top else { return self.row(row).map(LogitsRow::Whole) };
        let likeliest = &self.likeliest[row * n..(row + 1) * n];
        // what is no finite number comes first
        match likeliest.first().is_some_and(|likely| likely.logit.is_finite()) {
            true => Ok(LogitsRow::Likeliest(likeliest)),
            false => Err(nan_logits()),
        }
    }
}

pub(crate) fn nan_logits() -> EngineError {
    EngineError::new(
        "model.nan_logits",
        "the model's output holds values that are not numbers",
        "Its weights are damaged: download the model again.",
    )
}
