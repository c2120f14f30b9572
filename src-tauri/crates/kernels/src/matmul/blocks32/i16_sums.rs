//! Products of several tokens with transposed 32-element blocks where byte products are summed as i16 (AVX2).
//! These sums take half of the 16 registers. Float sums therefore stay in memory and are loaded once per
//! block.

use super::{Block32, K_TILE_BLOCKS, TransposedBlocks32, add_dot, zero_point_bias};
use crate::matmul::simd::{Simd, MAX_ROWS, i16_run_len};
use crate::matmul::packed_activations::{BlockQ8_0x8, PACK_TOKENS};

/// Implements `BlockFormat::multiply_packed`.
///
/// # Safety
/// Same requirements as `BlockFormat::multiply_packed`.
#[inline(always)]
pub unsafe fn add_packed<B: Block32, L: Simd, const T: usize, const P: usize>(
    transposed: [&TransposedBlocks32<L>; P],
    packed: &[BlockQ8_0x8],
    first: usize,
    accs: [&mut [[f32; MAX_ROWS]]; P],
) {
    assert!(packed.len() <= K_TILE_BLOCKS && first + T <= PACK_TOKENS);
    assert!(accs.iter().all(|accs| accs.len() == T));
    // SAFETY: guaranteed by the caller; arrays of `MAX_ROWS` hold any register. Tokens `first..first + T` are
    // in the pack and have a sum in each of `accs`.
    unsafe {
        for (block, packed) in packed.iter().enumerate() {
            let dots = dots::<B, L, T, P>(transposed, block, packed, first);
            for t in 0..T {
                let token_scale = *packed.scales.get_unchecked(first + t);
                for p in 0..P {
                    let dot = dots[p][t];
                    let scale = L::mul_f(L::load_f(transposed[p].scales[block].as_ptr()), L::splat_f(token_scale));
                    let sum = accs[p].get_unchecked_mut(t).as_mut_ptr();
                    let mut acc = L::fma(L::to_f(dot), scale, L::load_f(sum));
                    if B::HAS_MIN {
                        let token_sum = (*packed.sums.get_unchecked(first + t) / -128) as f32;
                        let minimum = L::load_f(transposed[p].mins[block].as_ptr());
                        acc = L::fma(minimum, L::splat_f(token_scale * token_sum), acc);
                    }
                    L::store_f(sum, acc);
                }
            }
        }
    }
}

/// Returns (panels, tokens): the products of a transposed block of each panel with tokens `first..first + T`
/// of a pack, with the zero point subtracted.
///
/// # Safety
/// Same requirements as `add_packed`.
#[inline(always)]
unsafe fn dots<B: Block32, L: Simd, const T: usize, const P: usize>(
    transposed: [&TransposedBlocks32<L>; P],
    block: usize,
    packed: &BlockQ8_0x8,
    first: usize,
) -> [[L::I; T]; P] {
    // SAFETY: guaranteed by the caller; columns and activations lie as `Simd::dot_columns` says.
    unsafe {
        let mut dots = [[L::zero(); T]; P];
        if let Some([a, b]) = transposed.get(..2).filter(|_| T == 4) {
            let both = dots_of_two_panels::<B, L>([a, b], block, packed, first);
            for p in 0..P {
                dots[p].copy_from_slice(&both[p][..T]);
            }
            return dots;
        }
        let run = const { i16_run_len::<L>(B::MAX_MAGNITUDE, 8) };
        for t in 0..T {
            let bias = zero_point_bias::<B, L>(*packed.sums.get_unchecked(first + t));
            for p in 0..P {
                dots[p][t] = bias;
                for from in (0..8).step_by(run) {
                    let mut short = L::zero();
                    for j in from..from + run {
                        let a = L::splat(packed.q.dword(j, first + t));
                        short = add_dot::<B, L>(short, transposed[p].column::<B>(block, j), a);
                    }
                    dots[p][t] = L::widen(dots[p][t], short);
                }
            }
        }
        dots
    }
}

/// Like `dots` for two panels and four tokens.
///
/// # Safety
/// Same requirements as `dots`.
#[inline(always)]
unsafe fn dots_of_two_panels<B: Block32, L: Simd>(
    transposed: [&TransposedBlocks32<L>; 2],
    block: usize,
    packed: &BlockQ8_0x8,
    first: usize,
) -> [[L::I; 4]; 2] {
    let w: [*const i32; 2] = transposed.map(|transposed| transposed.w[block].as_ptr().cast());
    // i16 sums may wrap in between if the final sum, with the zero point subtracted, fits.
    let fits = const { i16_run_len::<L>(B::MAX_CENTERED_MAGNITUDE, 8) == 8 };
    // SAFETY: guaranteed by the caller.
    unsafe {
        let q = (&raw const packed.q).cast::<i32>().add(first);
        if B::SIGNED {
            let mut dots = L::dot_signed_columns(w, q);
            for p in 0..2 {
                let sign_corrections = L::load(transposed[p].sign_corrections[block].as_ptr());
                for dot in &mut dots[p] {
                    *dot = L::add(*dot, sign_corrections);
                }
            }
            return dots;
        }
        let offset = B::zero_point::<L>();
        if fits {
            let mut dots = L::dot_columns::<8>(w, q);
            for t in 0..4 {
                let less = L::mul_i16(L::splat(*packed.i16_sums.get_unchecked(first + t)), -offset as i16);
                for p in 0..2 {
                    let short = if offset == 0 { dots[p][t] } else { L::add_i16(dots[p][t], less) };
                    dots[p][t] = L::widen(L::zero(), short);
                }
            }
            return dots;
        }
        let (mut dots, half) = (L::dot_columns::<4>(w, q), 4);
        let more = L::dot_columns::<4>(w.map(|w| w.add(half * MAX_ROWS)), q.add(half * PACK_TOKENS));
        for t in 0..4 {
            let bias = zero_point_bias::<B, L>(*packed.sums.get_unchecked(first + t));
            for p in 0..2 {
                dots[p][t] = L::widen(L::widen(bias, dots[p][t]), more[p][t]);
            }
        }
        dots
    }
}
