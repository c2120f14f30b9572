//! Adds mixtures of groups of columns to others, with factors of each row or the same for all rows.

use super::OpRow;
use crate::cpu::isa::{Mac, levels};

/// Row in the table of operations.
pub static ROW: OpRow = OpRow { name: "mix", formula: "out[j] = base[j] + Σ factors[j, i] · x[i]" };

/// One row: base, out (n, width), x (m, width), factors (n, m)
pub type Mix = fn(base: &[f32], x: &[f32], factors: &[f32], width: usize, out: &mut [f32]);

/// One row: base, out (n, width), x (m, width), factors (n, m)
pub fn scalar(base: &[f32], x: &[f32], factors: &[f32], width: usize, out: &mut [f32]) {
    let m = x.len() / width;
    for (at, out) in out.iter_mut().enumerate() {
        let (j, column) = (at / width, at % width);
        let parts = (0..m).map(|i| factors[j * m + i] * x[i * width + column]);
        *out = base[at] + parts.sum::<f32>();
    }
}

#[inline(always)]
fn body<M: Mac>(base: &[f32], x: &[f32], factors: &[f32], width: usize, out: &mut [f32]) {
    let m = x.len() / width;
    out.copy_from_slice(base);
    for (out, factors) in out.chunks_exact_mut(width).zip(factors.chunks_exact(m)) {
        for (x, factor) in x.chunks_exact(width).zip(factors) {
            for (out, x) in out.iter_mut().zip(x) {
                *out = M::mac(*factor, *x, *out);
            }
        }
    }
}

levels!(
    /// The kernel at each instruction-set level.
    pub LEVELS = body(base: &[f32], x: &[f32], factors: &[f32], width: usize, out: &mut [f32]));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_gets_its_own_sum() {
        let (base, x, factors) = (
            [1.0, 2.0, 3.0, 4.0],
            [10.0, 20.0, 30.0, 40.0, 50.0, 60.0],
            [
                1.0, 0.0, 0.0, //
                0.5, 0.0, -1.0,
            ],
        );
        let mut out = [0.0; 4];
        scalar(&base, &x, &factors, 2, &mut out);
        assert_eq!(out, [11.0, 22.0, 3.0 + 5.0 - 50.0, 4.0 + 10.0 - 60.0]);
    }
}
