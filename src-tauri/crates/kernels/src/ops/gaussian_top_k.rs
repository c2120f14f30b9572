//! Keeps what is far above a row's mean: about the largest elements, as if the row were normally distributed.

use super::OpRow;
use super::dot::{LANES, sum_lanes};
use crate::cpu::isa::{Mac, levels};

/// Row in the table of operations.
pub static ROW: OpRow =
    OpRow { name: "gaussian_top_k", formula: "max(x − mean(x) − deviations · √(variance(x)), 0)" };

/// One row: x, out (width)
pub type GaussianTopK = fn(x: &[f32], deviations: f32, out: &mut [f32]);

/// One row: x, out (width). The variance is that of all elements: their number divides it.
pub fn scalar(x: &[f32], deviations: f32, out: &mut [f32]) {
    let n = x.len() as f64;
    let mean = x.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
    let variance = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / n;
    let cutoff = (mean + f64::from(deviations) * variance.sqrt()) as f32;
    for (out, x) in out.iter_mut().zip(x) {
        *out = (x - cutoff).max(0.0);
    }
}

#[inline(always)]
fn body<M: Mac>(x: &[f32], deviations: f32, out: &mut [f32]) {
    let n = x.len() as f32;
    let mean = sum(x, |x, lane| lane + x) / n;
    let variance = sum(x, |x, lane| M::mac(x - mean, x - mean, lane)) / n;
    let cutoff = M::mac(deviations, variance.sqrt(), mean);
    for (out, x) in out.iter_mut().zip(x) {
        *out = (x - cutoff).max(0.0);
    }
}

/// Accumulates elements into lanes by index modulo their number, then adds the lanes.
#[inline(always)]
fn sum(x: &[f32], add: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let chunks = x.chunks_exact(LANES);
    for (lane, x) in lanes.iter_mut().zip(chunks.remainder()) {
        *lane = add(*x, *lane);
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
    pub LEVELS = body(x: &[f32], deviations: f32, out: &mut [f32]));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_that_of_all_elements() {
        // mean 5, variance 4 of all eight, 32/7 of a sample
        let mut out = [0.0; 8];
        scalar(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0], 0.5, &mut out);
        assert_eq!(out, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 3.0]);
        scalar(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0], -1.0, &mut out);
        assert_eq!(out, [0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 4.0, 6.0]);
    }
}
