//! Formats with one scale for 32 small integers: value = scale · (stored − zero point), or scale · stored +
//! min.
//! Formats differ in where scale and integers are stored and how 32 integers are loaded into a register.

use std::marker::PhantomData;

mod i16_sums;

use super::simd::{Simd, MAX_ROWS, RowPointers, i16_run_len};
use super::smmla;
use super::packed_activations::{BlockQ8_0x8, PACK_TOKENS, PackedActivationsRef};
use super::panel::{RowPrefetcher, BlockFormat, TokenActivations};

/// Elements in a block.
pub const LEN: usize = 32;
/// Blocks transposed at once: 4 KB of weights beside the tokens' activations in the L1 cache.
pub const K_TILE_BLOCKS: usize = 8;

/// Decoding of one 32-element format.
pub trait Block32 {
    /// Bytes of a block.
    const BYTES: usize;
    /// Largest magnitude of the stored integers.
    const MAX_MAGNITUDE: i32;
    /// Largest magnitude of the stored integers minus the zero point.
    const MAX_CENTERED_MAGNITUDE: i32 = Self::MAX_MAGNITUDE;
    /// The integers are signed and went through `Simd::bias_signed`.
    const SIGNED: bool = false;

    /// Decodes the scale of each row; by default an f16 at the start of the block.
    ///
    /// # Safety
    /// Same requirements as `Simd`; a whole block lies at `offset` of each row.
    #[inline(always)]
    unsafe fn scale<L: Simd>(rows: &RowPointers, offset: usize) -> L::F {
        // SAFETY: guaranteed by the caller.
        unsafe { L::load_f16(rows, offset) }
    }

    /// A min times the activation sum is added.
    const HAS_MIN: bool = false;

    /// Decodes the min of each row. Called only if `HAS_MIN`.
    ///
    /// # Safety
    /// Same requirements as `scale`.
    #[inline(always)]
    unsafe fn block_min<L: Simd>(_: &RowPointers, _: usize) -> L::F {
        // SAFETY: guaranteed by the caller.
        unsafe { L::zero_f() }
    }

    /// Returns the zero point of the stored integers.
    fn zero_point<L: Simd>() -> i32;

    /// Unpacks the stored integers in the layout of `Simd::load_rows32`.
    ///
    /// # Safety
    /// Same requirements as `Simd`; a whole block lies at `offset` of each row.
    unsafe fn integers<L: Simd>(rows: &RowPointers, offset: usize) -> [L::I; 8];

    /// Returns the dot product of each row with 32 activations, zero point included.
    ///
    /// # Safety
    /// Same requirements as `integers`.
    unsafe fn dots<L: Simd>(rows: &RowPointers, offset: usize, q: &[i8; LEN]) -> L::I;
}

/// Returns acc + four products in each lane; `Simd::widen` finishes the sum.
///
/// # Safety
/// Same requirements as `Simd`.
#[inline(always)]
pub unsafe fn add_dot<B: Block32, L: Simd>(acc: L::I, w: L::I, a: L::I) -> L::I {
    // SAFETY: guaranteed by the caller.
    unsafe { if B::SIGNED { L::dot_i16_signed(acc, w, a) } else { L::dot_i16(acc, w, a) } }
}

/// Implements `Block32::dots` for formats whose integers must be unpacked first.
///
/// # Safety
/// Same requirements as `Block32::dots`.
#[inline(always)]
pub unsafe fn dot_integers<B: Block32, L: Simd>(rows: &RowPointers, offset: usize, q: &[i8; LEN]) -> L::I {
    // SAFETY: guaranteed by the caller; `q` has 32 bytes.
    unsafe {
        let mut dots = B::integers::<L>(rows, offset);
        let a = L::broadcast32(q.as_ptr().cast());
        for dot in &mut dots {
            let short = add_dot::<B, L>(L::zero(), *dot, a);
            *dot = L::widen(L::zero(), short);
        }
        let (first, second) = L::reduce(dots);
        L::add(first, second)
    }
}

/// Transposed blocks of a k-tile.
#[repr(C, align(64))] // one register each, never across two cache lines
pub struct TransposedBlocks32<L> {
    /// (blocks, 8, rows): four bytes each.
    pub w: [[[i32; MAX_ROWS]; 8]; K_TILE_BLOCKS],
    /// (blocks, rows)
    pub scales: [[f32; MAX_ROWS]; K_TILE_BLOCKS],
    /// (blocks, rows)
    pub mins: [[f32; MAX_ROWS]; K_TILE_BLOCKS],
    /// (blocks, rows): what the dot products are short of if `w` was written by `Simd::store_signed`.
    pub sign_corrections: [[i32; MAX_ROWS]; K_TILE_BLOCKS],
    lanes: PhantomData<L>,
}

/// Transposed weights are stored by `Simd::store_signed`, magnitudes apart from signs.
const fn stores_sign_separately<B: Block32, L: Simd>() -> bool {
    B::SIGNED && L::I16_SUMS
}

impl<L: Simd> TransposedBlocks32<L> {
    /// Loads four bytes of each row as they were before `transpose_blocks` stored them.
    ///
    /// # Safety
    /// Same requirements as `Simd`.
    #[inline(always)]
    pub unsafe fn column<B: Block32>(&self, block: usize, j: usize) -> L::I {
        let from = self.w[block][j].as_ptr();
        // SAFETY: guaranteed by the caller; an array of `MAX_ROWS` holds any register, here the one stored
        // there.
        unsafe { if stores_sign_separately::<B, L>() { L::load_signed(from) } else { L::load(from) } }
    }
}

/// Adapts a 32-element format to `BlockFormat`.
pub struct Panel32<B>(PhantomData<B>);

impl<B: Block32> BlockFormat for Panel32<B> {
    const K_TILE_LEN: usize = K_TILE_BLOCKS * LEN;
    const BLOCK_LEN: usize = LEN;
    const BLOCK_BYTES: usize = B::BYTES;
    type Transposed<L: Simd> = TransposedBlocks32<L>;
    type PackedBlock = BlockQ8_0x8;

    fn packed_blocks<'a>(packed: PackedActivationsRef<'a>) -> &'a [BlockQ8_0x8] {
        match packed {
            PackedActivationsRef::Q8_0(packed) => packed,
            PackedActivationsRef::None | PackedActivationsRef::Q8K(_) => &[],
        }
    }

    #[inline(always)]
    unsafe fn multiply_block<L: Simd>(
        acc: L::F,
        rows: &RowPointers,
        offset: usize,
        token: &TokenActivations,
        block: usize,
        prefetcher: &mut RowPrefetcher,
    ) -> L::F {
        let (scale, sum) = (token.scales[block], token.sums[block]);
        let q = &token.q.as_chunks::<LEN>().0[block];
        // SAFETY: guaranteed by the caller.
        unsafe {
            prefetcher.prefetch::<L>(L::ROWS * B::BYTES);
            let dot = L::sub(B::dots::<L>(rows, offset, q), L::splat(B::zero_point::<L>() * sum));
            let row_scale = L::mul_f(B::scale::<L>(rows, offset), L::splat_f(scale));
            let acc = L::fma(L::to_f(dot), row_scale, acc);
            if !B::HAS_MIN {
                return acc;
            }
            L::fma(B::block_min::<L>(rows, offset), L::splat_f(scale * sum as f32), acc)
        }
    }

    fn zeroed_transposed<L: Simd>() -> TransposedBlocks32<L> {
        TransposedBlocks32 {
            w: [[[0; MAX_ROWS]; 8]; K_TILE_BLOCKS],
            scales: [[0.0; MAX_ROWS]; K_TILE_BLOCKS],
            mins: [[0.0; MAX_ROWS]; K_TILE_BLOCKS],
            sign_corrections: [[0; MAX_ROWS]; K_TILE_BLOCKS],
            lanes: PhantomData,
        }
    }

    #[inline(always)]
    unsafe fn transpose_blocks<L: Simd>(transposed: &mut TransposedBlocks32<L>, rows: &RowPointers, offset: usize, n_blocks: usize) {
        let parts = transposed.w.iter_mut().zip(&mut transposed.scales).zip(transposed.mins.iter_mut().zip(&mut transposed.sign_corrections));
        for (block, ((w, scales), (mins, sign_corrections))) in parts.enumerate().take(n_blocks) {
            let offset = offset + block * B::BYTES;
            // SAFETY: guaranteed by the caller; arrays of `MAX_ROWS` hold any register.
            unsafe {
                let columns = L::transpose(B::integers::<L>(rows, offset));
                if stores_sign_separately::<B, L>() {
                    let mut all = L::zero();
                    for (w, column) in w.iter_mut().zip(columns) {
                        all = L::add(all, L::store_signed(w.as_mut_ptr(), column));
                    }
                    L::store(sign_corrections.as_mut_ptr(), all);
                } else {
                    for (w, column) in w.iter_mut().zip(columns) {
                        L::store(w.as_mut_ptr(), column);
                    }
                }
                L::store_f(scales.as_mut_ptr(), B::scale::<L>(rows, offset));
                if B::HAS_MIN {
                    L::store_f(mins.as_mut_ptr(), B::block_min::<L>(rows, offset));
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn multiply_tokens<L: Simd, const T: usize>(
        transposed: &TransposedBlocks32<L>,
        tokens: &[TokenActivations; T],
        first: usize,
        n_blocks: usize,
        accs: &mut [[f32; MAX_ROWS]],
    ) {
        assert!(accs.len() == T && n_blocks <= K_TILE_BLOCKS);
        // SAFETY: guaranteed by the caller: each token has the activations, scales and sums of these blocks;
        // arrays of `MAX_ROWS` hold any register.
        unsafe {
            let mut acc = [L::zero_f(); T];
            for t in 0..T {
                acc[t] = L::load_f(accs[t].as_ptr());
            }
            for block in 0..n_blocks {
                let at = first + block;
                let mut dots = [L::zero(); T];
                for t in 0..T {
                    dots[t] = L::splat(-B::zero_point::<L>() * *tokens[t].sums.get_unchecked(at));
                }
                let q =
                    |j: usize, t: usize| tokens[t].q.as_ptr().add(at * LEN + j * 4).cast::<i32>().read_unaligned();
                let two = |i: usize, t: usize| smmla::load_pair_of::<L, T>(tokens, t, at * LEN + i * 8);
                dots = add_block::<B, L, T, 1>([transposed], block, (q, two), [dots])[0];
                let scale = L::load_f(transposed.scales[block].as_ptr());
                for t in 0..T {
                    let scale = L::mul_f(scale, L::splat_f(*tokens[t].scales.get_unchecked(at)));
                    acc[t] = L::fma(L::to_f(dots[t]), scale, acc[t]);
                }
                if B::HAS_MIN {
                    let minimum = L::load_f(transposed.mins[block].as_ptr());
                    for t in 0..T {
                        let scale = *tokens[t].scales.get_unchecked(at);
                        let sum = *tokens[t].sums.get_unchecked(at) as f32;
                        acc[t] = L::fma(minimum, L::splat_f(scale * sum), acc[t]);
                    }
                }
            }
            for t in 0..T {
                L::store_f(accs[t].as_mut_ptr(), acc[t]);
            }
        }
    }

    #[inline(always)]
    unsafe fn multiply_packed<L: Simd, const T: usize, const P: usize>(
        transposed: [&TransposedBlocks32<L>; P],
        packed: &[BlockQ8_0x8],
        first: usize,
        accs: [&mut [[f32; MAX_ROWS]]; P],
    ) {
        assert!(packed.len() <= K_TILE_BLOCKS && first + T <= PACK_TOKENS);
        assert!(accs.iter().all(|accs| accs.len() == T));
        if L::I16_SUMS {
            // SAFETY: guaranteed by the caller.
            return unsafe { i16_sums::add_packed::<B, L, T, P>(transposed, packed, first, accs) };
        }
        // SAFETY: guaranteed by the caller; arrays of `MAX_ROWS` hold any register, and tokens `first..first
        // + T` are in the pack.
        unsafe {
            let mut acc = [[L::zero_f(); T]; P];
            for p in 0..P {
                for t in 0..T {
                    acc[p][t] = L::load_f(accs[p][t].as_ptr());
                }
            }
            for (block, packed) in packed.iter().enumerate() {
                let mut dots = [[L::zero(); T]; P];
                for t in 0..T {
                    let bias = zero_point_bias::<B, L>(*packed.sums.get_unchecked(first + t));
                    for p in 0..P {
                        dots[p][t] = bias;
                    }
                }
                let q = |j: usize, t: usize| packed.q.dword(j, first + t);
                let two = |i: usize, t: usize| smmla::load_pair_at::<L>(packed.q.qword_ptr(i, first + t));
                dots = add_block::<B, L, T, P>(transposed, block, (q, two), dots);
                for p in 0..P {
                    let row_scale = L::load_f(transposed[p].scales[block].as_ptr());
                    for t in 0..T {
                        let scale = L::mul_f(row_scale, L::splat_f(*packed.scales.get_unchecked(first + t)));
                        acc[p][t] = L::fma(L::to_f(dots[p][t]), scale, acc[p][t]);
                    }
                }
                if B::HAS_MIN {
                    for p in 0..P {
                        let minimum = L::load_f(transposed[p].mins[block].as_ptr());
                        for t in 0..T {
                            let sum = (*packed.sums.get_unchecked(first + t) / -128) as f32;
                            let scale = *packed.scales.get_unchecked(first + t);
                            acc[p][t] = L::fma(minimum, L::splat_f(scale * sum), acc[p][t]);
                        }
                    }
                }
            }
            for p in 0..P {
                for t in 0..T {
                    L::store_f(accs[p][t].as_mut_ptr(), acc[p][t]);
                }
            }
        }
    }
}

/// Returns `dots` + the products of `T` tokens with a transposed block of each panel.
/// `q` returns four activations of a token, `two` eight of it and of the next.
///
/// # Safety
/// Same requirements as `BlockFormat::multiply_tokens`.
#[inline(always)]
unsafe fn add_block<B: Block32, L: Simd, const T: usize, const P: usize>(
    transposed: [&TransposedBlocks32<L>; P],
    block: usize,
    (q, two): (impl Fn(usize, usize) -> i32, impl Fn(usize, usize) -> L::I),
    mut dots: [[L::I; T]; P],
) -> [[L::I; T]; P] {
    if L::HAS_SMMLA {
        for p in 0..P {
            // SAFETY: guaranteed by the caller.
            dots[p] = unsafe { smmla::add_block::<L, T>(dots[p], &transposed[p].w[block], &two) };
        }
        return dots;
    }
    let run = const { i16_run_len::<L>(B::MAX_MAGNITUDE, 8) };
    // SAFETY: guaranteed by the caller.
    unsafe {
        for from in 0..8 / run {
            let mut shorts = if L::I16_SUMS { [[L::zero(); T]; P] } else { dots };
            for j in from * run..from * run + run {
                let mut w = [L::zero(); P];
                for p in 0..P {
                    w[p] = transposed[p].column::<B>(block, j);
                }
                for t in 0..T {
                    let a = L::splat(q(j, t));
                    for p in 0..P {
                        shorts[p][t] = add_dot::<B, L>(shorts[p][t], w[p], a);
                    }
                }
            }
            for p in 0..P {
                for t in 0..T {
                    let wide = if L::I16_SUMS { L::widen(dots[p][t], shorts[p][t]) } else { shorts[p][t] };
                    dots[p][t] = wide;
                }
            }
        }
        dots
    }
}

/// Returns the initial value of the dot product with 32 elements, which subtracts the zero point. `sum`: the
/// activation sum times −128.
///
/// # Safety
/// Same requirements as `Simd`.
#[inline(always)]
pub unsafe fn zero_point_bias<B: Block32, L: Simd>(sum: i32) -> L::I {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let sum = L::splat(sum);
        match B::zero_point::<L>() {
            0 => L::zero(),
            8 => L::shift_right_signed::<4>(sum),
            12 => L::add(L::shift_right_signed::<4>(sum), L::shift_right_signed::<5>(sum)),
            16 => L::shift_right_signed::<3>(sum),
            128 => sum,
            offset => L::mul(L::shift_right_signed::<7>(sum), L::splat(offset)),
        }
    }
}
