//! Rotary embedding: rotates each pair (a, b) of a head by the angle coordinate · inv_freq. The coordinate is the position,
//! or in images the row or column as the pair's axis says.
//! Sines and cosines are equal for all heads and layers of a row, so they come from a table computed once per batch.

use super::OpRow;
use crate::cpu::isa::{Mac, levels};
use crate::graph::{N_COORDINATES, RopeShape, RopeStyle};

/// Row in the table of operations.
pub static ROW: OpRow =
    OpRow { name: "rope", formula: "(a·cos − b·sin, a·sin + b·cos), angle = coordinate · inv_freq" };

/// One row of heads, in place: x (n_heads, head_dim), cos and sin (n_rot / 2)
pub type RotateHeads = fn(x: &mut [f32], head_dim: usize, style: RopeStyle, cos: &[f32], sin: &[f32]);

/// Computes the angles of one row: cos, sin (n_rot / 2)
pub fn angles(rope: &RopeShape, coordinates: [u32; N_COORDINATES], cos: &mut [f32], sin: &mut [f32]) {
    for (i, inv_freq) in rope.inv_freq.iter().enumerate() {
        let axis = rope.axes.get(i).copied().unwrap_or(0);
        let (s, c) = (coordinates[usize::from(axis)] as f32 * inv_freq).sin_cos();
        cos[i] = c * rope.mscale;
        sin[i] = s * rope.mscale;
    }
}

/// One row: x (n_heads, head_dim), cos and sin (n_rot / 2); elements from n_rot on are unchanged
pub fn scalar(x: &mut [f32], head_dim: usize, style: RopeStyle, cos: &[f32], sin: &[f32]) {
    for head in x.chunks_exact_mut(head_dim) {
        for i in 0..cos.len() {
            let (a, b) = match style {
                RopeStyle::Interleaved => (2 * i, 2 * i + 1),
                RopeStyle::Half => (i, i + cos.len()),
            };
            let (x, y) = (head[a], head[b]);
            head[a] = x * cos[i] - y * sin[i];
            head[b] = x * sin[i] + y * cos[i];
        }
    }
}

#[inline(always)]
fn body<M: Mac>(x: &mut [f32], head_dim: usize, style: RopeStyle, cos: &[f32], sin: &[f32]) {
    let n = cos.len();
    let sin = &sin[..n];
    for head in x.chunks_exact_mut(head_dim) {
        match style {
            RopeStyle::Interleaved => {
                for (pair, (c, s)) in head.chunks_exact_mut(2).zip(cos.iter().zip(sin)) {
                    let (a, b) = (pair[0], pair[1]);
                    pair[0] = a * c - b * s;
                    pair[1] = a * s + b * c;
                }
            }
            RopeStyle::Half => {
                let (low, high) = head[..2 * n].split_at_mut(n);
                for i in 0..n {
                    let (a, b) = (low[i], high[i]);
                    low[i] = a * cos[i] - b * sin[i];
                    high[i] = a * sin[i] + b * cos[i];
                }
            }
        }
    }
}

levels!(
    /// The kernel at each instruction-set level.
    pub LEVELS = body(x: &mut [f32], head_dim: usize, style: RopeStyle, cos: &[f32], sin: &[f32]));
