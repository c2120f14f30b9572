//! Formats of 256 small integers in groups, each group with an integer scale of its own under one d of the
//! block. Whole blocks are summed exactly in integers; a block makes one float addition (two where there are minima).

use std::marker::PhantomData;

use super::simd::{Simd, MAX_ROWS, RowPointers};
use super::smmla;
use super::packed_activations::{BlockQ8Kx8, PACK_TOKENS, PackedActivationsRef};
use super::panel::{RowPrefetcher, BlockFormat, TokenActivations};
use super::sums256::{biased_sums, finish_packed, scaled_sums, scaled_sums_of_two_panels, subtracts_in_i16};

const LEN: usize = 256;
/// Groups of 32 elements: what one register of activations holds.
pub const GROUPS: usize = 8;
/// Sums of 16 activations in a block.
pub const SUMS: usize = 16;

/// What the lanes of a block say apart from its integers.
#[derive(Clone, Copy)]
pub struct Block256Header<L: Simd> {
    /// (16 elements): scale of each
    pub scales: [L::I; SUMS],
    /// (pairs of 16 elements), i16 each: what the sums of the activations are multiplied with; minima of 32 elements
    /// are four pairs of those
    pub offsets: [L::I; SUMS / 2],
    /// Factor of the scaled integers, and of the offsets where they have their own (negative: they are subtracted).
    pub d: L::F,
    pub dmin: L::F,
}

/// What is taken from the stored integers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ZeroPoint {
    /// Mins with a d of their own; integers within 0..=127.
    Mins,
    /// The same for all; integers within 0..=127.
    Four,
    ThirtyTwo,
    /// Nothing, but integers are signed and went through `Simd::bias_signed`.
    Signed,
}

/// Scales and offsets from sixteen signed bytes in four registers, of which the upper 32 − `DOWN` bits count.
///
/// # Safety
/// As for `Simd`.
#[inline(always)]
pub unsafe fn signed_scales<L: Simd, const DOWN: u32>(bytes: [L::I; 4], d: L::F) -> Block256Header<L> {
    // SAFETY: the caller's.
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

/// What distinguishes such a format.
pub trait Block256 {
    const BYTES: usize;
    /// Whether the two halves of 32 elements have scales of their own.
    const SCALES_BY_16: bool;
    const ZERO_POINT: ZeroPoint;
    /// Of the stored integers, in magnitude.
    const MAX_MAGNITUDE: i32;

    /// Scales, offsets and factors of a block.
    ///
    /// # Safety
    /// As for `Simd`; a whole block lies at `offset` of each row.
    unsafe fn header<L: Simd>(rows: &RowPointers, offset: usize) -> Block256Header<L>;

    /// All groups of the block in the arrangement of `Simd::load_rows32`, each given to `take` with its number.
    ///
    /// # Safety
    /// As for `Simd`; a whole block lies at `offset` of each row.
    unsafe fn visit_groups<L: Simd, T: GroupVisitor<L>>(rows: &RowPointers, offset: usize, visitor: &mut T);
}

/// Who takes the groups of a block.
pub trait GroupVisitor<L: Simd> {
    /// Raw bytes as loaded, before bits are picked from them: transposed where that is wanted.
    ///
    /// # Safety
    /// As for `Simd`.
    unsafe fn arrange(rows: [L::I; 8]) -> [L::I; 8];

    /// # Safety
    /// As for `Simd`.
    unsafe fn visit(&mut self, group: usize, integers: [L::I; 8]);
}

/// acc + four products in each lane, for `Simd::widen` to end.
///
/// # Safety
/// As for `Simd`.
#[inline(always)]
pub unsafe fn add_dot<L: Simd>(offset: ZeroPoint, acc: L::I, w: L::I, a: L::I) -> L::I {
    // SAFETY: the caller's.
    unsafe {
        match offset {
            ZeroPoint::Signed => L::dot_i16_signed(acc, w, a),
            ZeroPoint::Mins | ZeroPoint::Four | ZeroPoint::ThirtyTwo => L::dot_i16(acc, w, a),
        }
    }
}

/// Multiplies each group with one token as it comes.
struct GroupDot<'a, L: Simd> {
    q: &'a [i8; LEN],
    scales: [L::I; SUMS],
    by_16: bool,
    offset: ZeroPoint,
    sum: L::I,
    prefetcher: &'a mut RowPrefetcher,
    /// Bytes to ask for with each two groups.
    prefetch_bytes: usize,
}

impl<L: Simd> GroupVisitor<L> for GroupDot<'_, L> {
    #[inline(always)]
    unsafe fn arrange(rows: [L::I; 8]) -> [L::I; 8] {
        rows
    }

    #[inline(always)]
    unsafe fn visit(&mut self, group: usize, integers: [L::I; 8]) {
        // SAFETY: the caller's; a group has 32 activations.
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
#[repr(C, align(64))] // a register each, never across two cache lines
pub struct TransposedBlock256<L> {
    /// (groups, 8, rows): four bytes each
    pub w: [[[i32; MAX_ROWS]; 8]; GROUPS],
    /// (16 elements, rows), as `Simd::store_scale` writes them
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
        // SAFETY: the caller's.
        unsafe { L::transpose(rows) }
    }

    #[inline(always)]
    unsafe fn visit(&mut self, group: usize, integers: [L::I; 8]) {
        for (w, column) in self.w[group].iter_mut().zip(integers) {
            // SAFETY: the caller's; an array of `MAX_ROWS` takes any register.
            unsafe { L::store(w.as_mut_ptr(), column) }
        }
    }
}

/// The float additions of a block, in the order that all paths keep. From integers whose offset was taken off.
///
/// # Safety
/// As for `Simd`.
#[inline(always)]
pub unsafe fn finish<B: Block256, L: Simd>(
    acc: L::F,
    (sum, minima): (L::I, L::I),
    (d, dmin_factor): (L::F, L::F),
    scale: L::F,
) -> L::F {
    // SAFETY: the caller's.
    unsafe {
        let value = L::mul_f(L::to_f(sum), d);
        let value = match B::ZERO_POINT {
            ZeroPoint::Mins => L::fma(L::to_f(minima), dmin_factor, value),
            ZeroPoint::Four | ZeroPoint::ThirtyTwo | ZeroPoint::Signed => value,
        };
        L::fma(value, scale, acc)
    }
}

/// The integers of a block less their offset, given `offset`, the sum of the activations times the scales: taken off
/// in integers, so that nothing cancels in floats. Mins stay for `finish`.
///
/// # Safety
/// As for `Simd`.
#[inline(always)]
pub unsafe fn subtract_zero_point<B: Block256, L: Simd>(sum: L::I, offset: L::I) -> L::I {
    // SAFETY: the caller's.
    unsafe {
        match B::ZERO_POINT {
            ZeroPoint::Four => L::sub(sum, L::shift_left::<2>(offset)),
            ZeroPoint::ThirtyTwo => L::sub(sum, L::shift_left::<5>(offset)),
            ZeroPoint::Signed => L::sub(sum, L::mul(offset, L::splat(L::SIGNED_BIAS))),
            ZeroPoint::Mins => sum,
        }
    }
}

/// The sums of the activations that belong to the offsets of a header: one pair each.
#[inline(always)]
const fn pairs<B: Block256>(sums: &[i32; 12]) -> (usize, &[i32]) {
    let (of_16, of_32) = sums.split_at(8);
    match (B::ZERO_POINT, B::SCALES_BY_16) {
        (ZeroPoint::Mins, false) => (4, of_32),
        (ZeroPoint::Mins, true) | (ZeroPoint::Four | ZeroPoint::ThirtyTwo | ZeroPoint::Signed, _) => (8, of_16),
    }
}

/// A format of this kind, for the panel.
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
        let (n_pairs, pairs) = pairs::<B>(&token.sums.as_chunks::<12>().0[block]);
        // SAFETY: the caller's.
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
            finish::<B, L>(acc, sums, factors, L::splat_f(token.scales[block]))
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
        // SAFETY: the caller's; arrays of `MAX_ROWS` take any register.
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
        // SAFETY: the caller's: each token has the activations, scales and sums of this block; arrays of `MAX_ROWS`
        // hold any register.
        unsafe {
            let sums = if L::HAS_SMMLA {
                let at = |group: usize, i: usize| block * LEN + group * 32 + i * 8;
                let a = |group: usize, i: usize, t: usize| smmla::load_pair_of::<L, T>(tokens, t, at(group, i));
                smmla::scaled_sums::<B, L, T>(transposed, |_, _| L::zero(), a)
            } else {
                let q = |group: usize, j: usize, t: usize| {
                    let at = block * LEN + group * 32 + j * 4;
                    tokens[t].q.as_ptr().add(at).cast::<i32>().read_unaligned()
                };
                scaled_sums::<B, L, T, 1>([transposed], q)[0]
            };
            let factors = (L::load_f(transposed.d.as_ptr()), L::load_f(transposed.dmin.as_ptr()));
            for t in 0..T {
                let (n_pairs, pairs) = pairs::<B>(&tokens[t].sums.as_chunks::<12>().0[block]);
                let mut offset = L::zero();
                for i in 0..n_pairs {
                    let pair = L::splat(pairs[i]);
                    offset = L::dot_pairs(offset, L::load(transposed.offsets[i].as_ptr()), pair);
                }
                let sums = (subtract_zero_point::<B, L>(sums[t], offset), offset);
                let (acc, scale) = (L::load_f(accs[t].as_ptr()), L::splat_f(tokens[t].scales[block]));
                L::store_f(accs[t].as_mut_ptr(), finish::<B, L>(acc, sums, factors, scale));
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
        // SAFETY: the caller's; arrays of `MAX_ROWS` hold any register, and tokens `first..first + T` are in the packed.
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
                    sums[p] = smmla::biased_sums::<B, L, T>(transposed[p], packed, first);
                }
            } else {
                sums = biased_sums::<B, L, T, P>(transposed, packed, first);
            }
            finish_packed::<B, L, T, P>(transposed, packed, first, (&sums, whole), accs);
        }
    }
}
