//! Layer norm: out = (x − mean) / √(variance + eps) · weight + bias.

use super::OpRow;
use super::dot::{LANES, sum_lanes};
use crate::cpu::isa::{Mac, levels};

/// Row in the table of operations.
pub static ROW: OpRow =
    OpRow { name: "layer_norm", formula: "(x − mean) / √(variance + eps) · weight + bias" };

/// One row: x, weight, bias, out (width)
pub type LayerNorm = fn(x: &[f32], weight: &[f32], bias: &[f32], eps: f32, out: &mut [f32]);

/// x, weight, bias, out (width)
pub fn scalar(x: &[f32], weight: &[f32], bias: &[f32], eps: f32, out: &mut [f32]) {
    let n = x.len() as f64;
    let mean = x.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
    let variance = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / n;
    let scale = 1.0 / (variance as f32 + eps).sqrt();
    for i in 0..x.len() {
        out[i] = (x[i] - mean as f32) * scale * weight[i] + bias[i];
    }
}

/// x, weight, bias, out (n_groups · width)
pub fn scalar_groups(x: &[f32], weights: [&[f32]; 2], (eps, width): (f32, usize), out: &mut [f32]) {
    groups(x, weights, width, out, |x, weight, bias, out| scalar(x, weight, bias, eps, out));
}

/// Calls `norm` with each group of `width` columns: x, weight, bias, out.
pub fn groups(
    x: &[f32],
    [weight, bias]: [&[f32]; 2],
    width: usize,
    out: &mut [f32],
    norm: impl Fn(&[f32], &[f32], &[f32], &mut [f32]),
) {
    for (group, out) in out.chunks_exact_mut(width).enumerate() {
        let at = group * width..(group + 1) * width;
        norm(&x[at.clone()], &weight[at.clone()], &bias[at], out);
    }
}

#[inline(always)]
fn body<M: Mac>(x: &[f32], weight: &[f32], bias: &[f32], eps: f32, out: &mut [f32]) {
    let n = out.len();
    let (x, weight, bias) = (&x[..n], &weight[..n], &bias[..n]);
    let mean = sum(x, |x, lane| lane + x) / n as f32;
    let variance = sum(x, |x, lane| M::mac(x - mean, x - mean, lane)) / n as f32;
    let scale = 1.0 / (variance + eps).sqrt();
    for i in 0..n {
        out[i] = M::mac((x[i] - mean) * scale, weight[i], bias[i]);
    }
}

/// Accumulates elements into lanes by index modulo their number, then adds the lanes.
#[inline(always)]
fn sum(x: &[f32], add: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let chunks = x.chunks_exact(LANES);
    for (i, x) in chunks.remainder().iter().enumerate() {
        lanes[i] = add(*x, lanes[i]);
    }
    for x in chunks {
        for i in 0..LANES {
            lanes[i] = add(x[i], lanes[i]);
        }
    }
    sum_lanes(lanes)
}

levels!(
    /// The kernel at each instruction-set level.
    pub LEVELS = body(x: &[f32], weight: &[f32], bias: &[f32], eps: f32, out: &mut [f32]));
