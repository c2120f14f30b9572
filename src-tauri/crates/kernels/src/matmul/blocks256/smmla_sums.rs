//! Products of several tokens with a transposed 256-element block by `smmla`. Guarantees the sums of the column path.

use super::sums::zero_point_bias;
use super::{Block256, GROUPS, TransposedBlock256};
use crate::matmul::packed_activations::BlockQ8Kx8;
use crate::matmul::simd::{MAX_ROWS, Simd};
use crate::matmul::smmla;

/// Returns the scaled integer sums of a block for each token.
/// `begin` returns the initial value of the products with 16 elements for a token and the next. `two` returns
/// bytes 8i..8i + 8 of a group.
///
/// # Safety
/// Same requirements as `Simd`.
#[inline(always)]
pub unsafe fn scaled_sums<B: Block256, L: Simd, const T: usize>(
    transposed: &TransposedBlock256<L>,
    begin: impl Fn(usize, usize) -> L::I,
    two: impl Fn(usize, usize, usize) -> L::I,
) -> [L::I; T] {
    // SAFETY: guaranteed by the caller; scales are as `Simd::store_scale` writes them.
    unsafe {
        let mut sums = [[L::zero(); 2]; T];
        for group in 0..GROUPS {
            let mut dots = [[L::zero(); 2]; T];
            for half in 0..2 {
                let sixteen = 2 * group + half;
                for pair in 0..T.div_ceil(2) {
                    let begin = begin(sixteen, 2 * pair);
                    for part in 0..2 {
                        // Without separate scales both halves share one sum.
                        let starts_sum = half == 0 || B::SCALES_BY_16;
                        dots[pair][part] = if starts_sum { begin } else { L::add(dots[pair][part], begin) };
                    }
                }
                for i in 2 * half..2 * half + 2 {
                    dots = smmla::add_eight::<L, T>(dots, transposed.w[group].as_chunks().0, i, |t| two(group, i, t));
                }
                if half == 1 || B::SCALES_BY_16 {
                    let which = if B::SCALES_BY_16 { sixteen } else { 2 * group };
                    let scale = transposed.scales[which].as_ptr();
                    let scale = [L::load(scale), L::load(scale.add(MAX_ROWS / 2))];
                    for pair in 0..T.div_ceil(2) {
                        for part in 0..2 {
                            let scaled = L::mul(dots[pair][part], scale[part]);
                            sums[pair][part] = L::add(sums[pair][part], scaled);
                        }
                    }
                }
            }
        }
        smmla::split_tokens::<L, T>(sums)
    }
}

/// Like `scaled_sums` for tokens `first..first + T` of a pack, with the zero point (but not mins) subtracted.
///
/// # Safety
/// Same requirements as `BlockFormat::multiply_packed`; `T` is even.
#[inline(always)]
pub unsafe fn biased_sums<B: Block256, L: Simd, const T: usize>(
    transposed: &TransposedBlock256<L>,
    packed: &BlockQ8Kx8,
    first: usize,
) -> [L::I; T] {
    // SAFETY: guaranteed by the caller: a pack has these tokens, in pairs.
    unsafe {
        let begin = |sixteen: usize, t: usize| {
            zero_point_bias::<B, L>(L::splat_pair(packed.sums[sixteen][first + t..first + t + 2].as_ptr()))
        };
        let two = |group: usize, i: usize, t: usize| smmla::load_pair_at::<L>(packed.q[group].qword_ptr(i, first + t));
        scaled_sums::<B, L, T>(transposed, begin, two)
    }
}
