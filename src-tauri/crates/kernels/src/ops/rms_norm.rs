//! Root mean square norm of each group of columns: out = x / √(mean(x²) + eps) · weight.

use super::OpRow;
use super::dot::{LANES, sum_lanes};
use crate::cpu::isa::{Mac, levels};

/// Row in the table of operations.
pub static ROW: OpRow = OpRow { name: "rms_norm", formula: "x / √(mean(x²) + eps) · (weight + offset)" };

/// One row: x, out (n_groups, width), weight (width) including its offset
pub type RmsNorm = fn(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]);

/// x, out (n_groups, width), weight (width) including its offset
pub fn scalar(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let width = weight.len();
    for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        let sum: f64 = x.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        let scale = 1.0 / ((sum / width as f64) as f32 + eps).sqrt();
        for i in 0..width {
            out[i] = x[i] * scale * weight[i];
        }
    }
}

#[inline(always)]
fn body<M: Mac>(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let width = weight.len();
    for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        group::<M>(x, weight, eps, out);
    }
}

#[inline(always)]
fn group<M: Mac>(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let n = out.len();
    let (x, weight) = (&x[..n], &weight[..n]);
    let mut lanes = [0.0; LANES];
    let chunks = x.chunks_exact(LANES);
    for (i, x) in chunks.remainder().iter().enumerate() {
        lanes[i] = x * x;
    }
    for x in chunks {
        for i in 0..LANES {
            lanes[i] = M::mac(x[i], x[i], lanes[i]);
        }
    }
    let scale = 1.0 / (sum_lanes(lanes) / n as f32 + eps).sqrt();
    for i in 0..n {
        out[i] = x[i] * scale * weight[i];
    }
}

levels!(
    /// The kernel at each instruction-set level.
    pub LEVELS = body(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]));
