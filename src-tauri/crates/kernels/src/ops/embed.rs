//! Looks up rows of a table by token, position or kind, and decodes them from any block format.

use super::OpRow;
use crate::batch::Batch;
use crate::graph::Lookup;
use crate::tensor::Tensor;

/// Row in the table of operations.
pub static ROW: OpRow = OpRow { name: "embed", formula: "table[token, position or kind] · scale" };

/// One row: out (d)
pub fn scalar(table: &Tensor, row: u32, scale: f32, out: &mut [f32]) {
    table.decode_row(row as usize, out);
    if scale != 1.0 {
        for x in out {
            *x *= scale;
        }
    }
}

/// The row of a table of `n_rows` for a row of the batch.
pub fn row_of(by: Lookup, batch: &Batch, row: usize, n_rows: usize) -> u32 {
    match by {
        Lookup::Token => batch.tokens[row],
        Lookup::TokenOrFirst => Some(batch.tokens[row]).filter(|id| (*id as usize) < n_rows).unwrap_or(0),
        Lookup::Position => batch.positions[row],
        Lookup::Kind => batch.kinds.get(row).copied().unwrap_or(0),
    }
}
