//! Rows that the batch gives instead of looking them up: patches of an image, or what a vision tower made of them.

use super::OpRow;
use crate::batch::Batch;

/// Row in the table of operations.
pub static ROW: OpRow = OpRow { name: "given", formula: "given[row], or 0" };
/// Row of the replacement in the table of operations.
pub static REPLACE_ROW: OpRow = OpRow { name: "replace_given", formula: "given[row], or x" };

/// One row: out (d), unchanged unless the batch gives the row
pub fn scalar(batch: &Batch, row: usize, start: usize, out: &mut [f32]) {
    if let Some(given) = batch.given.columns(row, start, out.len()) {
        out.copy_from_slice(given);
    }
}
