//! Walsh–Hadamard transform of groups of columns (Sylvester's order), scaled to be orthonormal: symmetric, and its own
//! inverse. It spreads outliers over a group, so that quantization under one scale loses less (QuaRot, Ashkboos et al.
//! 2024, arXiv 2404.00456).
//!
//! Only additions, subtractions and one multiplication per element, in one order: every backend computes the same bits.

use super::OpRow;
use crate::cpu::isa::{Mac, levels};

/// Row in the table of operations.
pub static ROW: OpRow = OpRow { name: "hadamard", formula: "H · x / √width for each group of columns" };

/// x (n, width), in place
pub type Transform = fn(x: &mut [f32], width: usize);

/// x (n, width), in place
pub fn scalar(x: &mut [f32], width: usize) {
    let scale = 1.0 / (width as f32).sqrt();
    for group in x.chunks_exact_mut(width) {
        let mut half = 1;
        while half < width {
            for start in (0..width).step_by(2 * half) {
                for i in start..start + half {
                    let (a, b) = (group[i], group[i + half]);
                    group[i] = a + b;
                    group[i + half] = a - b;
                }
            }
            half *= 2;
        }
        group.iter_mut().for_each(|x| *x *= scale);
    }
}

/// The stages whose pairs are close by, within eight elements that stay in registers.
const NEAR: usize = 8;

#[inline(always)]
fn near_stages(x: &mut [f32; NEAR]) {
    let mut half = 1;
    while half < NEAR {
        let of = *x;
        for i in 0..NEAR {
            x[i] = if i & half == 0 { of[i] + of[i + half] } else { of[i - half] - of[i] };
        }
        half *= 2;
    }
}

#[inline(always)]
fn body<M: Mac>(x: &mut [f32], width: usize) {
    if width < NEAR {
        return scalar(x, width);
    }
    let scale = 1.0 / (width as f32).sqrt();
    for group in x.chunks_exact_mut(width) {
        group.as_chunks_mut::<NEAR>().0.iter_mut().for_each(near_stages);
        let mut half = NEAR;
        while half < width {
            for pairs in group.chunks_exact_mut(2 * half) {
                let (low, high) = pairs.split_at_mut(half);
                for (low, high) in low.iter_mut().zip(high) {
                    (*low, *high) = (*low + *high, *low - *high);
                }
            }
            half *= 2;
        }
        group.iter_mut().for_each(|x| *x *= scale);
    }
}

levels!(
    /// The kernel at each instruction-set level.
    pub LEVELS = body(x: &mut [f32], width: usize));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::isa::IsaLevel;

    /// The rows of the matrix are orthonormal, with Sylvester's signs: −1 where an odd number of bits are common.
    #[test]
    fn the_matrix_is_sylvesters_and_orthonormal() {
        for width in [2, 4, 8, 32, 64, 128, 256, 512] {
            let rows: Vec<Vec<f32>> = (0..width)
                .map(|i| {
                    let mut row = vec![0.0; width];
                    row[i] = 1.0;
                    scalar(&mut row, width);
                    row
                })
                .collect();
            let size = 1.0 / (width as f32).sqrt();
            for i in 0..width {
                for j in 0..width {
                    let sign = if (i & j).count_ones() % 2 == 0 { 1.0 } else { -1.0 };
                    assert_eq!(rows[i][j], sign * size, "width {width}, element {i}, {j}");
                    let product: f32 = rows[i].iter().zip(&rows[j]).map(|(a, b)| a * b).sum();
                    let expected = if i == j { 1.0 } else { 0.0 };
                    assert!((product - expected).abs() < 1e-5, "rows {i} and {j} of {width}: {product}");
                }
            }
        }
    }

    #[test]
    fn every_level_computes_the_same_bits_and_twice_is_the_identity() {
        for width in [2, 4, 8, 16, 64, 128, 256] {
            let x: Vec<f32> = (0..3 * width).map(|i| ((i * 37 % 101) as f32 - 50.0) / 7.0).collect();
            let mut expected = x.clone();
            scalar(&mut expected, width);
            for level in IsaLevel::present() {
                let kernel = LEVELS.at(level);
                let mut found = x.clone();
                kernel(&mut found, width);
                assert_eq!(found, expected, "{level}, width {width}");
                kernel(&mut found, width);
                for (found, x) in found.iter().zip(&x) {
                    assert!((found - x).abs() < 1e-5, "{level}, width {width}: {found}, not {x}");
                }
            }
        }
    }
}
