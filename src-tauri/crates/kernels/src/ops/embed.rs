//! Token ids or positions → rows of a table, decoded from whatever block format it has.

use super::OpRow;
use crate::graph::Lookup;
use crate::plan::Batch;
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

/// (rows) which row of the table each row of the batch takes.
pub fn rows<'a>(by: Lookup, batch: &Batch<'a>) -> &'a [u32] {
    match by {
        Lookup::Token => batch.tokens,
        Lookup::Position => batch.positions,
    }
}
