//! Products of several tokens with a transposed 256-element block: exact integer sums first, then the block's
//! float addition.

use std::ops::Range;

use super::{Block256, GROUPS, ZeroPoint, TransposedBlock256, add_dot, finish_block, subtract_zero_point};
use crate::matmul::simd::{GroupScales, ColumnGroups, Simd, MAX_ROWS, i16_run_len};
use crate::matmul::packed_activations::{BlockQ8Kx8, PACK_TOKENS};

/// Returns the scaled integer sums of a block times `T` tokens, zero point included. `q` returns four
/// activations of a token.
///
/// # Safety
/// Same requirements as `BlockFormat::multiply_tokens`.
#[inline(always)]
pub unsafe fn scaled_sums<B: Block256, L: Simd, const T: usize, const P: usize>(
    transposed: [&TransposedBlock256<L>; P],
    q: impl Fn(usize, usize, usize) -> i32,
) -> [[L::I; T]; P] {
    let under_a_scale = if B::SCALES_BY_16 { 4 } else { 8 };
    let run = const { i16_run_len::<L>(B::MAX_MAGNITUDE, if B::SCALES_BY_16 { 4 } else { 8 }) };
    // SAFETY: guaranteed by the caller; arrays of `MAX_ROWS` hold any register.
    unsafe {
        let mut sums = [[L::zero(); T]; P];
        for group in 0..GROUPS {
            for from in 0..8 / run {
                let mut shorts = [[L::zero(); T]; P];
                for j in from * run..from * run + run {
                    let mut w = [L::zero(); P];
                    for p in 0..P {
                        w[p] = L::load(transposed[p].w[group][j].as_ptr());
                    }
                    for t in 0..T {
                        let a = L::splat(q(group, j, t));
                        for p in 0..P {
                            shorts[p][t] = add_dot::<L>(B::ZERO_POINT, shorts[p][t], w[p], a);
                        }
                    }
                }
                let half = from * run / under_a_scale;
                for p in 0..P {
                    let scale = L::load(transposed[p].scales[group * 2 + half].as_ptr());
                    for t in 0..T {
                        sums[p][t] = L::widen_scaled(sums[p][t], shorts[p][t], scale);
                    }
                }
            }
        }
        sums
    }
}

/// Like `scaled_sums` for two panels and tokens `first..first + 4` of a pack. Subtracts the zero point if
/// `subtracts_in_i16`.
///
/// # Safety
/// Same requirements as `BlockFormat::multiply_packed`.
#[inline(always)]
pub unsafe fn scaled_sums_of_two_panels<B: Block256, L: Simd>(
    transposed: [&TransposedBlock256<L>; 2],
    packed: &BlockQ8Kx8,
    first: usize,
) -> [[L::I; 4]; 2] {
    // SAFETY: guaranteed by the caller; columns and activations lie as `Simd::dot_columns` says.
    unsafe {
        let from = ColumnGroups {
            w: transposed.map(|transposed| transposed.w.as_ptr().cast()),
            q: packed.q.as_ptr().cast::<i32>().add(first),
            scales: transposed.map(|transposed| transposed.scales.as_ptr().cast()),
            bias: packed.i16_sums.as_ptr().cast::<i32>().add(first),
        };
        L::dot_groups(const { group_scales::<B, L>() }, GROUPS, from)
    }
}

const fn group_scales<B: Block256, L: Simd>() -> GroupScales {
    match (B::SCALES_BY_16, i16_run_len::<L>(B::MAX_MAGNITUDE, 8) == 8) {
        (true, _) if subtracts_in_i16::<B>() => GroupScales::BiasedHalves,
        (true, _) => GroupScales::Halves,
        (false, true) => GroupScales::Group,
        (false, false) => GroupScales::GroupInHalves,
    }
}

/// The zero point is subtracted from the i16 sums. These may wrap in between, as long as the final sum fits.
/// Four columns of 0..=63 do not fit in an i16, of −32..=31 they do.
pub const fn subtracts_in_i16<B: Block256>() -> bool {
    matches!(B::ZERO_POINT, ZeroPoint::ThirtyTwo)
}

/// Like `scaled_sums` for tokens `first..first + T` of a pack, with the zero point (but not mins) subtracted.
///
/// # Safety
/// Same requirements as `BlockFormat::multiply_packed`.
#[inline(always)]
pub unsafe fn biased_sums<B: Block256, L: Simd, const T: usize, const P: usize>(
    transposed: [&TransposedBlock256<L>; P],
    packed: &BlockQ8Kx8,
    first: usize,
) -> [[L::I; T]; P] {
    // Columns that share a scale, of 8 in a group, and the stride between scales of 16 elements.
    let (n_columns, step) = if B::SCALES_BY_16 { (4, 1) } else { (8, 2) };
    // SAFETY: guaranteed by the caller; arrays of `MAX_ROWS` hold any register.
    unsafe {
        let mut sums = [[L::zero(); T]; P];
        for two in 0..GROUPS * 8 / n_columns / 2 {
            // Alternate between two scales: dot products under one scale would wait for each other.
            let mut dots = [[[L::zero(); T]; P]; 2];
            for i in 0..2 {
                for t in 0..T {
                    let bias = sum_biases::<B, L>(packed, (two * 2 + i) * step..(two * 2 + i + 1) * step, first + t);
                    for p in 0..P {
                        dots[i][p][t] = bias;
                    }
                }
            }
            for column in 0..n_columns {
                for i in 0..2 {
                    let at = (two * 2 + i) * n_columns + column;
                    let (group, j) = (at / 8, at % 8);
                    let mut w = [L::zero(); P];
                    for p in 0..P {
                        w[p] = L::load(transposed[p].w[group][j].as_ptr());
                    }
                    for t in 0..T {
                        let a = L::splat(packed.q[group].dword(j, first + t));
                        for p in 0..P {
                            dots[i][p][t] = add_dot::<L>(B::ZERO_POINT, dots[i][p][t], w[p], a);
                        }
                    }
                }
            }
            for i in 0..2 {
                for p in 0..P {
                    let scale = L::load(transposed[p].scales[(two * 2 + i) * step].as_ptr());
                    for t in 0..T {
                        sums[p][t] = L::add(sums[p][t], L::mul(dots[i][p][t], scale));
                    }
                }
            }
        }
        sums
    }
}

/// Returns the initial value of the dot products with all of `sixteens` of token `t`.
///
/// # Safety
/// Same requirements as `BlockFormat::multiply_packed`.
#[inline(always)]
unsafe fn sum_biases<B: Block256, L: Simd>(packed: &BlockQ8Kx8, sixteens: Range<usize>, t: usize) -> L::I {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut all = L::zero();
        for i in sixteens {
            all = L::add(all, zero_point_bias::<B, L>(L::splat(*packed.sums[i].get_unchecked(t))));
        }
        all
    }
}

/// Adds a block's sums of `T` tokens of a pack to `accs` of each panel. `whole`: the zero point is already
/// subtracted.
///
/// # Safety
/// Same requirements as `BlockFormat::multiply_packed`.
#[inline(always)]
pub unsafe fn finish_packed<B: Block256, L: Simd, const T: usize, const P: usize>(
    transposed: [&TransposedBlock256<L>; P],
    packed: &BlockQ8Kx8,
    first: usize,
    (sums, whole): (&[[L::I; T]; P], bool),
    accs: [&mut [[f32; MAX_ROWS]]; P],
) {
    // SAFETY: guaranteed by the caller; arrays of `MAX_ROWS` hold any register.
    unsafe {
        let mut offsets = [[L::zero(); T]; P];
        if B::ZERO_POINT == ZeroPoint::Mins || !whole && B::ZERO_POINT != ZeroPoint::Signed {
            let by_16 = B::SCALES_BY_16 || B::ZERO_POINT != ZeroPoint::Mins;
            let pairs: &[[i32; PACK_TOKENS]] = if by_16 { &packed.pair_sums_16 } else { &packed.pair_sums_32 };
            for (i, pairs) in pairs.iter().enumerate() {
                let mut offset = [L::zero(); P];
                for p in 0..P {
                    offset[p] = L::load(transposed[p].offsets[i].as_ptr());
                }
                for t in 0..T {
                    let pair = L::splat(*pairs.get_unchecked(first + t));
                    for p in 0..P {
                        offsets[p][t] = L::dot_pairs(offsets[p][t], offset[p], pair);
                    }
                }
            }
        }
        let mut factors = [(L::zero_f(), L::zero_f()); P];
        for p in 0..P {
            factors[p] = (L::load_f(transposed[p].d.as_ptr()), L::load_f(transposed[p].dmin.as_ptr()));
        }
        for t in 0..T {
            let scale = L::splat_f(*packed.scales.get_unchecked(first + t));
            for p in 0..P {
                let acc = L::load_f(accs[p][t].as_ptr());
                let (sum, offset) = (sums[p][t], offsets[p][t]);
                let sum = if whole { sum } else { subtract_zero_point::<B, L>(sum, offset) };
                let acc = finish_block::<B, L>(acc, (sum, offset), factors[p], scale);
                L::store_f(accs[p][t].as_mut_ptr(), acc);
            }
        }
    }
}

/// Returns the initial value of the dot product with 16 elements, which subtracts the zero point. `sum`: the
/// activation sum times −32.
///
/// # Safety
/// Same requirements as `Simd`.
#[inline(always)]
pub unsafe fn zero_point_bias<B: Block256, L: Simd>(sum: L::I) -> L::I {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match B::ZERO_POINT {
            ZeroPoint::Four => L::shift_right_signed::<3>(sum),
            ZeroPoint::ThirtyTwo => sum,
            ZeroPoint::Signed if L::SIGNED_BIAS == 128 => L::shift_left::<2>(sum),
            ZeroPoint::Signed | ZeroPoint::Mins => L::zero(),
        }
    }
}
