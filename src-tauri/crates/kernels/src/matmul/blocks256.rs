//! Super-block formats (K-quants, IQ): 256 small integers in groups, an integer scale per group, one f16
//! scale d per block.
//! A block is summed exactly in integers and makes one float addition, or two if it has mins.

use std::marker::PhantomData;

mod smmla_sums;
mod sums;

use super::simd::{Simd, MAX_ROWS, RowPointers};
use super::smmla;
use super::packed_activations::{BlockQ8Kx8, PACK_TOKENS, PackedActivationsRef};
use super::panel::{RowPrefetcher, BlockFormat, TokenActivations};
use sums::{biased_sums, finish_packed, scaled_sums, scaled_sums_of_two_panels, subtracts_in_i16};

const LEN: usize = 256;
/// Groups of 32 elements: one register of activations each.
pub const GROUPS: usize = 8;
/// Activation sums (of 16 elements each) in a block.
pub const SUMS: usize = 16;

/// The decoded header of a block, one lane per row.
#[derive(Clone, Copy)]
pub struct Block256Header<L: Simd> {
    /// (16 elements): the scale of each.
    pub scales: [L::I; SUMS],
    /// (pairs of 16 elements), an i16 each: multipliers of the activation sums. Mins of 32 elements fill four
    /// pairs.
    pub offsets: [L::I; SUMS / 2],
    /// Scale d of the integers, and dmin of the offsets for formats with mins. dmin is negative, as mins are
    /// subtracted.
    pub d: L::F,
    pub dmin: L::F,
}

/// What is subtracted from the stored integers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ZeroPoint {
    /// Mins with a scale dmin; integers within 0..=127.
    Mins,
    /// 4 for all elements; integers within 0..=127.
    Four,
    /// 32 for all elements; integers within 0..=127.
    ThirtyTwo,
    /// Nothing; the integers are signed and went through `Simd::bias_signed`.
    Signed,
}

/// Decodes sixteen signed scales from four registers, keeping the upper 32 − `DOWN` bits of each byte.
///
/// # Safety
/// Same requirements as `Simd`.
#[inline(always)]
pub unsafe fn signed_scales<L: Simd, const DOWN: u32>(bytes: [L::I; 4], d: L::F) -> Block256Header<L> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (scales, offsets) = ([L::zero(); SUMS], [L::zero(); SUMS / 2]);
        let mut header = Block256Header { scales, offsets, d, dmin: L::zero_f() };
        let low = L::splat(0xFFFF);
        for i in 0..4 {
            let four = bytes[i];
            let each = [
                L::shift_right_signed::<DOWN>(L::shift_left::<24>(four)),
                L::shift_right_signed::<DOWN>(L::shift_left::<16>(four)),
                L::shift_right_signed::<DOWN>(L::shift_left::<8>(four)),
                L::shift_right_signed::<DOWN>(four),
            ];
            for j in 0..4 {
                header.scales[i * 4 + j] = each[j];
            }
            header.offsets[i * 2] = L::or(L::and(each[0], low), L::shift_left::<16>(each[1]));
            header.offsets[i * 2 + 1] = L::or(L::and(each[2], low), L::shift_left::<16>(each[3]));
        }
        header
    }
}

/// Decoding of one 256-element format.
pub trait Block256 {
    /// Bytes of a block.
    const BYTES: usize;
    /// The two halves of 32 elements have separate scales.
    const SCALES_BY_16: bool;
    /// What is subtracted from the stored integers.
    const ZERO_POINT: ZeroPoint;
    /// Largest magnitude of the stored integers.
    const MAX_MAGNITUDE: i32;

    /// Decodes the scales, offsets and block scales.
    ///
    /// # Safety
    /// Same requirements as `Simd`; a whole block lies at `offset` of each row.
    unsafe fn header<L: Simd>(rows: &RowPointers, offset: usize) -> Block256Header<L>;

    /// Unpacks all groups of the block in the layout of `Simd::load_rows32` and passes each to `visitor` with
    /// its index.
    ///
    /// # Safety
    /// Same requirements as `Simd`; a whole block lies at `offset` of each row.
    unsafe fn visit_groups<L: Simd, T: GroupVisitor<L>>(rows: &RowPointers, offset: usize, visitor: &mut T);
}

/// Receives the groups of a block.
pub trait GroupVisitor<L: Simd> {
    /// Rearranges raw bytes before bits are extracted: transposes them if the visitor needs columns.
    ///
    /// # Safety
    /// Same requirements as `Simd`.
    unsafe fn arrange(rows: [L::I; 8]) -> [L::I; 8];

    /// Takes the integers of group `group`.
    ///
    /// # Safety
    /// Same requirements as `Simd`.
    unsafe fn visit(&mut self, group: usize, integers: [L::I; 8]);
}

/// Returns acc + four products in each lane; `Simd::widen` finishes the sum.
///
/// # Safety
/// Same requirements as `Simd`.
#[inline(always)]
pub unsafe fn add_dot<L: Simd>(offset: ZeroPoint, acc: L::I, w: L::I, a: L::I) -> L::I {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match offset {
            ZeroPoint::Signed => L::dot_i16_signed(acc, w, a),
            ZeroPoint::Mins | ZeroPoint::Four | ZeroPoint::ThirtyTwo => L::dot_i16(acc, w, a),
        }
    }
}

/// Multiplies each group with one token as it is unpacked.
struct GroupDot<'a, L: Simd> {
    q: &'a [i8; LEN],
    scales: [L::I; SUMS],
    by_16: bool,
    offset: ZeroPoint,
    sum: L::I,
    prefetcher: &'a mut RowPrefetcher,
    /// Bytes to prefetch with every two groups.
    prefetch_bytes: usize,
}

impl<L: Simd> GroupVisitor<L> for GroupDot<'_, L> {
    #[inline(always)]
    unsafe fn arrange(rows: [L::I; 8]) -> [L::I; 8] {
        rows
    }

    #[inline(always)]
    unsafe fn visit(&mut self, group: usize, integers: [L::I; 8]) {
        // SAFETY: guaranteed by the caller; a group has 32 activations.
        unsafe {
            if group.is_multiple_of(2) {
                self.prefetcher.prefetch::<L>(self.prefetch_bytes);
            }
            let a = L::broadcast32(self.q.as_ptr().add(group * 32).cast());
            let mut dots = integers;
            for dot in &mut dots {
                let short = add_dot::<L>(self.offset, L::zero(), *dot, a);
                *dot = L::widen(L::zero(), short);
            }
            let (first, second) = L::reduce(dots);
            let scaled = if self.by_16 {
                L::add(L::mul(first, self.scales[group * 2]), L::mul(second, self.scales[group * 2 + 1]))
            } else {
                L::mul(L::add(first, second), self.scales[group * 2])
            };
            self.sum = L::add(self.sum, scaled);
        }
    }
}

/// A transposed block.
#[repr(C, align(64))] // one register each, never across two cache lines
pub struct TransposedBlock256<L> {
    /// (groups, 8, rows): four bytes each.
    pub w: [[[i32; MAX_ROWS]; 8]; GROUPS],
    /// (16 elements, rows), as `Simd::store_scale` writes them.
    pub scales: [[i32; MAX_ROWS]; SUMS],
    /// (pairs of 16 elements, rows)
    pub offsets: [[i32; MAX_ROWS]; SUMS / 2],
    /// (rows)
    pub d: [f32; MAX_ROWS],
    pub dmin: [f32; MAX_ROWS],
    lanes: PhantomData<L>,
}

impl<L: Simd> GroupVisitor<L> for TransposedBlock256<L> {
    #[inline(always)]
    unsafe fn arrange(rows: [L::I; 8]) -> [L::I; 8] {
        // SAFETY: guaranteed by the caller.
        unsafe { L::transpose(rows) }
    }

    #[inline(always)]
    unsafe fn visit(&mut self, group: usize, integers: [L::I; 8]) {
        for (w, column) in self.w[group].iter_mut().zip(integers) {
            // SAFETY: guaranteed by the caller; an array of `MAX_ROWS` holds any register.
            unsafe { L::store(w.as_mut_ptr(), column) }
        }
    }
}

/// Makes the float additions of a block in the order common to all paths. The zero point is already
/// subtracted from `sum`.
///
/// # Safety
/// Same requirements as `Simd`.
#[inline(always)]
pub unsafe fn finish_block<B: Block256, L: Simd>(
    acc: L::F,
    (sum, minima): (L::I, L::I),
    (d, dmin_factor): (L::F, L::F),
    scale: L::F,
) -> L::F {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let value = L::mul_f(L::to_f(sum), d);
        let value = match B::ZERO_POINT {
            ZeroPoint::Mins => L::fma(L::to_f(minima), dmin_factor, value),
            ZeroPoint::Four | ZeroPoint::ThirtyTwo | ZeroPoint::Signed => value,
        };
        L::fma(value, scale, acc)
    }
}

/// Subtracts the zero point from the integer sum of a block. `offset`: the activation sums times the scales.
/// Integer arithmetic, so that nothing cancels in floats. Mins are left to `finish_block`.
///
/// # Safety
/// Same requirements as `Simd`.
#[inline(always)]
pub unsafe fn subtract_zero_point<B: Block256, L: Simd>(sum: L::I, offset: L::I) -> L::I {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match B::ZERO_POINT {
            ZeroPoint::Four => L::sub(sum, L::shift_left::<2>(offset)),
            ZeroPoint::ThirtyTwo => L::sub(sum, L::shift_left::<5>(offset)),
            ZeroPoint::Signed => L::sub(sum, L::mul(offset, L::splat(L::SIGNED_BIAS))),
            ZeroPoint::Mins => sum,
        }
    }
}

/// Returns the number of header offsets in use and their activation sums, one pair each.
#[inline(always)]
const fn offset_sums<B: Block256>(sums: &[i32; 12]) -> (usize, &[i32]) {
    let (of_16, of_32) = sums.split_at(8);
    match (B::ZERO_POINT, B::SCALES_BY_16) {
        (ZeroPoint::Mins, false) => (4, of_32),
        (ZeroPoint::Mins, true) | (ZeroPoint::Four | ZeroPoint::ThirtyTwo | ZeroPoint::Signed, _) => (8, of_16),
    }
}

/// Adapts a 256-element format to `BlockFormat`.
pub struct Panel256<B>(PhantomData<B>);

impl<B: Block256> BlockFormat for Panel256<B> {
    const K_TILE_LEN: usize = LEN;
    const BLOCK_LEN: usize = LEN;
    const BLOCK_BYTES: usize = B::BYTES;
    type Transposed<L: Simd> = TransposedBlock256<L>;
    type PackedBlock = BlockQ8Kx8;

    fn packed_blocks<'a>(packed: PackedActivationsRef<'a>) -> &'a [BlockQ8Kx8] {
        match packed {
            PackedActivationsRef::Q8K(packed) => packed,
            PackedActivationsRef::None | PackedActivationsRef::Q8_0(_) => &[],
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
        let q = token.q.as_chunks::<LEN>().0;
        let (n_pairs, pairs) = offset_sums::<B>(&token.sums.as_chunks::<12>().0[block]);
        // SAFETY: guaranteed by the caller.
        unsafe {
            let header = B::header::<L>(rows, offset);
            let mut visitor = GroupDot {
                q: &q[block],
                scales: header.scales,
                by_16: B::SCALES_BY_16,
                offset: B::ZERO_POINT,
                sum: L::zero(),
                prefetcher,
                prefetch_bytes: 2 * L::ROWS * B::BYTES / GROUPS,
            };
            B::visit_groups::<L, _>(rows, offset, &mut visitor);
            let mut offset = L::zero();
            for i in 0..n_pairs {
                offset = L::dot_pairs(offset, header.offsets[i], L::splat(pairs[i]));
            }
            let sums = (subtract_zero_point::<B, L>(visitor.sum, offset), offset);
            let factors = (header.d, header.dmin);
            finish_block::<B, L>(acc, sums, factors, L::splat_f(token.scales[block]))
        }
    }

    fn zeroed_transposed<L: Simd>() -> TransposedBlock256<L> {
        TransposedBlock256 {
            w: [[[0; MAX_ROWS]; 8]; GROUPS],
            scales: [[0; MAX_ROWS]; SUMS],
            offsets: [[0; MAX_ROWS]; SUMS / 2],
            d: [0.0; MAX_ROWS],
            dmin: [0.0; MAX_ROWS],
            lanes: PhantomData,
        }
    }

    #[inline(always)]
    unsafe fn transpose_blocks<L: Simd>(transposed: &mut TransposedBlock256<L>, rows: &RowPointers, offset: usize, _: usize) {
        // SAFETY: guaranteed by the caller; arrays of `MAX_ROWS` hold any register.
        unsafe {
            let header = B::header::<L>(rows, offset);
            for (to, scale) in transposed.scales.iter_mut().zip(header.scales) {
                L::store_scale(to.as_mut_ptr(), scale);
            }
            for (to, offset) in transposed.offsets.iter_mut().zip(header.offsets) {
                L::store(to.as_mut_ptr(), offset);
            }
            L::store_f(transposed.d.as_mut_ptr(), header.d);
            L::store_f(transposed.dmin.as_mut_ptr(), header.dmin);
            B::visit_groups::<L, _>(rows, offset, transposed);
        }
    }

    #[inline(always)]
    unsafe fn multiply_tokens<L: Simd, const T: usize>(
        transposed: &TransposedBlock256<L>,
        tokens: &[TokenActivations; T],
        block: usize,
        _: usize,
        accs: &mut [[f32; MAX_ROWS]],
    ) {
        assert!(accs.len() == T);
        // SAFETY: guaranteed by the caller: each token has the activations, scales and sums of this block;
        // arrays of `MAX_ROWS` hold any register.
        unsafe {
            let sums = if L::HAS_SMMLA {
                let at = |group: usize, i: usize| block * LEN + group * 32 + i * 8;
                let a = |group: usize, i: usize, t: usize| smmla::load_pair_of::<L, T>(tokens, t, at(group, i));
                smmla_sums::scaled_sums::<B, L, T>(transposed, |_, _| L::zero(), a)
            } else {
                let q = |group: usize, j: usize, t: usize| {
                    let at = block * LEN + group * 32 + j * 4;
                    tokens[t].q.as_ptr().add(at).cast::<i32>().read_unaligned()
                };
                scaled_sums::<B, L, T, 1>([transposed], q)[0]
            };
            let factors = (L::load_f(transposed.d.as_ptr()), L::load_f(transposed.dmin.as_ptr()));
            for t in 0..T {
                let (n_pairs, pairs) = offset_sums::<B>(&tokens[t].sums.as_chunks::<12>().0[block]);
                let mut offset = L::zero();
                for i in 0..n_pairs {
                    let pair = L::splat(pairs[i]);
                    offset = L::dot_pairs(offset, L::load(transposed.offsets[i].as_ptr()), pair);
                }
                let sums = (subtract_zero_point::<B, L>(sums[t], offset), offset);
                let (acc, scale) = (L::load_f(accs[t].as_ptr()), L::splat_f(tokens[t].scales[block]));
                L::store_f(accs[t].as_mut_ptr(), finish_block::<B, L>(acc, sums, factors, scale));
            }
        }
    }

    #[inline(always)]
    unsafe fn multiply_packed<L: Simd, const T: usize, const P: usize>(
        transposed: [&TransposedBlock256<L>; P],
        packed: &[BlockQ8Kx8],
        first: usize,
        accs: [&mut [[f32; MAX_ROWS]]; P],
    ) {
        assert!(packed.len() == 1 && first + T <= PACK_TOKENS && accs.iter().all(|accs| accs.len() == T));
        let packed = &packed[0];
        // SAFETY: guaranteed by the caller; arrays of `MAX_ROWS` hold any register, and tokens `first..first
        // + T` are in the pack.
        unsafe {
            let mut whole = !L::I16_SUMS;
            let by_columns = T == 4 && L::I16_SUMS && B::ZERO_POINT != ZeroPoint::Signed;
            let mut sums = [[L::zero(); T]; P];
            if let Some([a, b]) = transposed.get(..2).filter(|_| by_columns) {
                whole = subtracts_in_i16::<B>();
                let both = scaled_sums_of_two_panels::<B, L>([a, b], packed, first);
                for p in 0..P {
                    sums[p].copy_from_slice(&both[p][..T]);
                }
            } else if L::I16_SUMS {
                let q = |group: usize, j: usize, t: usize| packed.q[group].dword(j, first + t);
                sums = scaled_sums::<B, L, T, P>(transposed, q);
            } else if L::HAS_SMMLA {
                for p in 0..P {
                    sums[p] = smmla_sums::biased_sums::<B, L, T>(transposed[p], packed, first);
                }
            } else {
                sums = biased_sums::<B, L, T, P>(transposed, packed, first);
            }
            finish_packed::<B, L, T, P>(transposed, packed, first, (&sums, whole), accs);
        }
    }
}
