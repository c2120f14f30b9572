//! Scales groups of columns to the root mean square of another row.

use super::OpRow;
use super::dot::{LANES, sum_lanes};
use crate::cpu::isa::{Mac, levels};

/// Row in the table of operations.
pub static ROW: OpRow =
    OpRow { name: "match_rms", formula: "x · √(mean(of²)) / √(max(mean(x²), least))" };

/// One row: x, out (n_groups, width), of (width)
pub type MatchRms = fn(x: &[f32], of: &[f32], least: f32, out: &mut [f32]);

/// One row: x, out (n_groups, width), of (width)
pub fn scalar(x: &[f32], of: &[f32], least: f32, out: &mut [f32]) {
    let width = of.len();
    let mean_square = |x: &[f32]| {
        let sum: f64 = x.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        (sum / width as f64) as f32
    };
    for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        let factor = mean_square(of).sqrt() / mean_square(x).max(least).sqrt();
        for (out, x) in out.iter_mut().zip(x) {
            *out = x * factor;
        }
    }
}

#[inline(always)]
fn body<M: Mac>(x: &[f32], of: &[f32], least: f32, out: &mut [f32]) {
    let width = of.len();
    let wanted = mean_square::<M>(of).sqrt();
    for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        let factor = wanted / mean_square::<M>(x).max(least).sqrt();
        for (out, x) in out.iter_mut().zip(x) {
            *out = x * factor;
        }
    }
}

#[inline(always)]
fn mean_square<M: Mac>(x: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let chunks = x.chunks_exact(LANES);
    for (lane, x) in lanes.iter_mut().zip(chunks.remainder()) {
        *lane = x * x;
    }
    for x in chunks {
        for i in 0..LANES {
            lanes[i] = M::mac(x[i], x[i], lanes[i]);
        }
    }
    sum_lanes(lanes) / x.len() as f32
}

levels!(
    /// The kernel at each instruction-set level.
    pub LEVELS = body(x: &[f32], of: &[f32], least: f32, out: &mut [f32]));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_get_the_size_of_the_other_row_and_zeros_stay() {
        let mut out = [0.0; 6];
        scalar(&[3.0, 4.0, 0.3, 0.4, 0.0, 0.0], &[0.0, 10.0], 1e-5, &mut out);
        let expected = [6.0, 8.0, 6.0, 8.0, 0.0, 0.0];
        assert!(out.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5), "{out:?}");
        // √(50) / √(1e-2): a bound, not a term of the sum
        scalar(&[0.01, 0.01, 0.3, 0.4, 0.1, 0.1], &[0.0, 10.0], 1e-2, &mut out);
        assert!((out[0] - 0.01 * 50f32.sqrt() / 0.1).abs() < 1e-5, "{out:?}");
        assert!((out[4] - 50f32.sqrt()).abs() < 1e-4, "{out:?}");
    }
}
