//! Selects columns of every group: the parts of a multiplication that computes several values side by side.

use super::OpRow;
use crate::graph::Columns;

/// Row in the table of operations.
pub static ROW: OpRow = OpRow { name: "columns", formula: "out[g, i] = x[g, start + i]" };

/// One row: x (n_groups, stride), out (n_groups, width)
pub fn scalar(x: &[f32], columns: Columns, out: &mut [f32]) {
    let Columns { stride, start, width, .. } = columns;
    for (x, out) in x.chunks_exact(stride).zip(out.chunks_exact_mut(width)) {
        out.copy_from_slice(&x[start..start + width]);
    }
}
