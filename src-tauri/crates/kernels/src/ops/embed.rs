//! Token ids or positions, or nothing, → rows of a table, decoded from whatever block format it has.

use super::OpRow;
use crate::batch::Batch;
use crate::graph::Lookup;
use crate::tensor::Tensor;

pub static ROW: OpRow = OpRow { name: "embed", formula: "table[token or position] · scale" };

/// One row: out (d)
pub fn scalar(table: &Tensor, row: u32, scale: f32, out: &mut [f32]) {
    table.decode_row(row as usize, out);
    if scale != 1.0 {
        for x in out {
            *x *= scale;
        }
    }
}

/// Which row of the table a row of the batch takes.
pub fn row_of(by: Lookup, batch: &Batch, row: usize) -> u32 {
    match by {
        Lookup::Token => batch.tokens[row],
        Lookup::Position => batch.positions[row],
        Lookup::First => 0,
    }
}
