//! x · Wᵀ for any block format: decodes each weight row to f32 and multiplies it with every token.

use weights::Codec;

use super::{OutTile, WeightRows};
use crate::ops::OpRow;
use crate::ops::dot::{self, Dot};
use crate::tensor::Tensor;

/// Name and formula of the operation.
pub static ROW: OpRow = OpRow { name: "matmul", formula: "x · Wᵀ + bias" };

/// Computes x (n_tokens, k) · weightᵀ [n_out, k] into out (n_tokens, n_out); `row` (k) is scratch.
pub fn scalar(weight: &Tensor, x: &[f32], row: &mut [f32], out: &mut [f32]) {
    let (n_out, k) = (weight.n_rows(), weight.n_cols());
    for r in 0..n_out {
        weight.decode_row(r, row);
        for (t, x) in x.chunks_exact(k).enumerate() {
            out[t * n_out + r] = (dot::LEVELS.portable)(x, row);
        }
    }
}

/// Multiplies weight rows with x (n_tokens, k); `row` (k) is scratch.
pub fn rows(dot: Dot, codec: &Codec, w: WeightRows, x: &[f32], row: &mut [f32], out: &mut OutTile) {
    for r in 0..w.n_rows() {
        (codec.decode)(w.row(r), row);
        for (t, x) in x.chunks_exact(w.k).enumerate() {
            out.set(t, r, dot(x, row));
        }
    }
}
