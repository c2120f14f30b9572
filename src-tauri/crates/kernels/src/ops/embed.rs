//! Token ids → rows of the embedding table, decoded from whatever block format it has.

use super::OpRow;
use crate::tensor::Tensor;

pub static ROW: OpRow = OpRow { name: "embed", formula: "table[token] · scale" };

/// One token: out (d)
pub fn scalar(table: &Tensor, token: u32, scale: f32, out: &mut [f32]) {
    table.decode_row(token as usize, out);
    if scale != 1.0 {
        for x in out {
            *x *= scale;
        }
    }
}
