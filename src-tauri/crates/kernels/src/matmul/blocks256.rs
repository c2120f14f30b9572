//! Formats of 256 small integers in groups, each group with an integer scale of its own under one factor of the
//! block. Whole blocks are summed exactly in integers; a block makes one float addition (two where there are minima).

use std::marker::PhantomData;

use super::lanes::{Lanes, MAX_ROWS, RowPointers};
use super::matrices;
use super::octets::{self, Octet256, Octets};
use super::panel::{Ahead, Format, Token};
use super::sums256::{biased_sums, finish_octet, scaled_sums, scaled_sums_of_both, whole_at_once};

const LEN: usize = 256;
/// Groups of 32 elements: what one register of activations holds.
pub const GROUPS: usize = 8;
/// Sums of 16 activations in a block.
pub const SUMS: usize = 16;

/// What the lanes of a block say apart from its integers.
#[derive(Clone, Copy)]
pub struct Header<L: Lanes> {
    /// (16 elements): scale of each
    pub scales: [L::I; SUMS],
    /// (pairs of 16 elements), i16 each: what the sums of the activations are multiplied with; minima of 32 elements
    /// are four pairs of those
    pub offsets: [L::I; SUMS / 2],
    /// Factor of the scaled integers, and of the offsets where they have their own (negative: they are subtracted).
    pub factor: L::F,
    pub offset_factor: L::F,
}

/// What is taken from the stored integers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Offset {
    /// Minima with a factor of their own; integers within 0..=127.
    Minima,
    /// The same for all; integers within 0..=127.
    Four,
    ThirtyTwo,
    /// Nothing, but integers are signed and went through `Lanes::signed`.
    Signed,
}

/// Scales and offsets from sixteen signed bytes in four registers, of which the upper 32 − `DOWN` bits count.
///
/// # Safety
/// As for `Lanes`.
#[inline(always)]
pub unsafe fn signed_scales<L: Lanes, const DOWN: u32>(bytes: [L::I; 4], factor: L::F) -> Header<L> {
    // SAFETY: the caller's.
    unsafe {
        let (scales, offsets) = ([L::zero(); SUMS], [L::zero(); SUMS / 2]);
        let mut header = Header { scales, offsets, factor, offset_factor: L::zero_f() };
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
    const OFFSET: Offset;
    /// Of the stored integers, in magnitude.
    const LARGEST: i32;

    /// Scales, offsets and factors of a block.
    ///
    /// # Safety
    /// As for `Lanes`; a whole block lies at `offset` of each row.
    unsafe fn header<L: Lanes>(rows: &RowPointers, offset: usize) -> Header<L>;

    /// All groups of the block in the arrangement of `Lanes::rows32`, each given to `take` with its number.
    ///
    /// # Safety
    /// As for `Lanes`; a whole block lies at `offset` of each row.
    unsafe fn groups<L: Lanes, T: Take<L>>(rows: &RowPointers, offset: usize, take: &mut T);
}

/// Who takes the groups of a block.
pub trait Take<L: Lanes> {
    /// Raw bytes as loaded, before bits are picked from them: transposed where that is wanted.
    ///
    /// # Safety
    /// As for `Lanes`.
    unsafe fn arrange(rows: [L::I; 8]) -> [L::I; 8];

    /// # Safety
    /// As for `Lanes`.
    unsafe fn group(&mut self, group: usize, integers: [L::I; 8]);
}

/// acc + four products in each lane, for `Lanes::widen` to end.
///
/// # Safety
/// As for `Lanes`.
#[inline(always)]
pub unsafe fn add_dot<L: Lanes>(offset: Offset, acc: L::I, w: L::I, a: L::I) -> L::I {
    // SAFETY: the caller's.
    unsafe {
        match offset {
            Offset::Signed => L::dot_short_signed(acc, w, a),
            Offset::Minima | Offset::Four | Offset::ThirtyTwo => L::dot_short(acc, w, a),
        }
    }
}

/// Multiplies each group with one token as it comes.
struct Multiply<'a, L: Lanes> {
    q: &'a [i8; LEN],
    scales: [L::I; SUMS],
    by_16: bool,
    offset: Offset,
    sum: L::I,
    ahead: &'a mut Ahead,
    /// Bytes to ask for with each two groups.
    asked: usize,
}

impl<L: Lanes> Take<L> for Multiply<'_, L> {
    #[inline(always)]
    unsafe fn arrange(rows: [L::I; 8]) -> [L::I; 8] {
        rows
    }

    #[inline(always)]
    unsafe fn group(&mut self, group: usize, integers: [L::I; 8]) {
        // SAFETY: the caller's; a group has 32 activations.
        unsafe {
            if group.is_multiple_of(2) {
                self.ahead.ask::<L>(self.asked);
            }
            let a = L::repeat32(self.q.as_ptr().add(group * 32).cast());
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

/// A turned block.
#[repr(C, align(64))] // a register each, never across two cache lines
pub struct Turned<L> {
    /// (groups, 8, rows): four bytes each
    pub w: [[[i32; MAX_ROWS]; 8]; GROUPS],
    /// (16 elements, rows), as `Lanes::store_scale` writes them
    pub scales: [[i32; MAX_ROWS]; SUMS],
    /// (pairs of 16 elements, rows)
    pub offsets: [[i32; MAX_ROWS]; SUMS / 2],
    /// (rows)
    pub factor: [f32; MAX_ROWS],
    pub offset_factor: [f32; MAX_ROWS],
    lanes: PhantomData<L>,
}

impl<L: Lanes> Take<L> for Turned<L> {
    #[inline(always)]
    unsafe fn arrange(rows: [L::I; 8]) -> [L::I; 8] {
        // SAFETY: the caller's.
        unsafe { L::transpose(rows) }
    }

    #[inline(always)]
    unsafe fn group(&mut self, group: usize, integers: [L::I; 8]) {
        for (w, column) in self.w[group].iter_mut().zip(integers) {
            // SAFETY: the caller's; an array of `MAX_ROWS` takes any register.
            unsafe { L::store(w.as_mut_ptr(), column) }
        }
    }
}

/// The float additions of a block, in the order that all paths keep. From integers whose offset was taken off.
///
/// # Safety
/// As for `Lanes`.
#[inline(always)]
pub unsafe fn finish<B: Block256, L: Lanes>(
    acc: L::F,
    (sum, minima): (L::I, L::I),
    (factor, minima_factor): (L::F, L::F),
    scale: L::F,
) -> L::F {
    // SAFETY: the caller's.
    unsafe {
        let value = L::mul_f(L::to_f(sum), factor);
        let value = match B::OFFSET {
            Offset::Minima => L::fma(L::to_f(minima), minima_factor, value),
            Offset::Four | Offset::ThirtyTwo | Offset::Signed => value,
        };
        L::fma(value, scale, acc)
    }
}

/// The integers of a block less their offset, given `offset`, the sum of the activations times the scales: taken off
/// in integers, so that nothing cancels in floats. Minima stay for `finish`.
///
/// # Safety
/// As for `Lanes`.
#[inline(always)]
pub unsafe fn take_off<B: Block256, L: Lanes>(sum: L::I, offset: L::I) -> L::I {
    // SAFETY: the caller's.
    unsafe {
        match B::OFFSET {
            Offset::Four => L::sub(sum, L::shift_left::<2>(offset)),
            Offset::ThirtyTwo => L::sub(sum, L::shift_left::<5>(offset)),
            Offset::Signed => L::sub(sum, L::mul(offset, L::splat(L::SIGNED_BIAS))),
            Offset::Minima => sum,
        }
    }
}

/// The sums of the activations that belong to the offsets of a header: one pair each.
#[inline(always)]
const fn pairs<B: Block256>(sums: &[i32; 12]) -> (usize, &[i32]) {
    let (of_16, of_32) = sums.split_at(8);
    match (B::OFFSET, B::SCALES_BY_16) {
        (Offset::Minima, false) => (4, of_32),
        (Offset::Minima, true) | (Offset::Four | Offset::ThirtyTwo | Offset::Signed, _) => (8, of_16),
    }
}

/// A format of this kind, for the panel.
pub struct Blocks256<B>(PhantomData<B>);

impl<B: Block256> Format for Blocks256<B> {
    const STRETCH_LEN: usize = LEN;
    const BLOCK_LEN: usize = LEN;
    const BLOCK_BYTES: usize = B::BYTES;
    type Turned<L: Lanes> = Turned<L>;
    type Octet = Octet256;

    fn octets<'a>(octets: Octets<'a>) -> &'a [Octet256] {
        match octets {
            Octets::By256(octets) => octets,
            Octets::None | Octets::By32(_) => &[],
        }
    }

    #[inline(always)]
    unsafe fn block<L: Lanes>(
        acc: L::F,
        rows: &RowPointers,
        offset: usize,
        token: &Token,
        block: usize,
        ahead: &mut Ahead,
    ) -> L::F {
        let q = token.q.as_chunks::<LEN>().0;
        let (n_pairs, pairs) = pairs::<B>(&token.sums.as_chunks::<12>().0[block]);
        // SAFETY: the caller's.
        unsafe {
            let header = B::header::<L>(rows, offset);
            let mut take = Multiply {
                q: &q[block],
                scales: header.scales,
                by_16: B::SCALES_BY_16,
                offset: B::OFFSET,
                sum: L::zero(),
                ahead,
                asked: 2 * L::ROWS * B::BYTES / GROUPS,
            };
            B::groups::<L, _>(rows, offset, &mut take);
            let mut offset = L::zero();
            for i in 0..n_pairs {
                offset = L::dot_pairs(offset, header.offsets[i], L::splat(pairs[i]));
            }
            let sums = (take_off::<B, L>(take.sum, offset), offset);
            let factors = (header.factor, header.offset_factor);
            finish::<B, L>(acc, sums, factors, L::splat_f(token.scales[block]))
        }
    }

    fn room<L: Lanes>() -> Turned<L> {
        Turned {
            w: [[[0; MAX_ROWS]; 8]; GROUPS],
            scales: [[0; MAX_ROWS]; SUMS],
            offsets: [[0; MAX_ROWS]; SUMS / 2],
            factor: [0.0; MAX_ROWS],
            offset_factor: [0.0; MAX_ROWS],
            lanes: PhantomData,
        }
    }

    #[inline(always)]
    unsafe fn turn<L: Lanes>(turned: &mut Turned<L>, rows: &RowPointers, offset: usize, _: usize) {
        // SAFETY: the caller's; arrays of `MAX_ROWS` take any register.
        unsafe {
            let header = B::header::<L>(rows, offset);
            for (to, scale) in turned.scales.iter_mut().zip(header.scales) {
                L::store_scale(to.as_mut_ptr(), scale);
            }
            for (to, offset) in turned.offsets.iter_mut().zip(header.offsets) {
                L::store(to.as_mut_ptr(), offset);
            }
            L::store_f(turned.factor.as_mut_ptr(), header.factor);
            L::store_f(turned.offset_factor.as_mut_ptr(), header.offset_factor);
            B::groups::<L, _>(rows, offset, turned);
        }
    }

    #[inline(always)]
    unsafe fn tokens<L: Lanes, const T: usize>(
        turned: &Turned<L>,
        tokens: &[Token; T],
        block: usize,
        _: usize,
        accs: &mut [[f32; MAX_ROWS]],
    ) {
        assert!(accs.len() == T);
        // SAFETY: the caller's: each token has the activations, scales and sums of this block; arrays of `MAX_ROWS`
        // hold any register.
        unsafe {
            let sums = if L::MATRICES {
                let at = |group: usize, i: usize| block * LEN + group * 32 + i * 8;
                let a = |group: usize, i: usize, t: usize| matrices::two_of::<L, T>(tokens, t, at(group, i));
                matrices::scaled_sums::<B, L, T>(turned, |_, _| L::zero(), a)
            } else {
                let q = |group: usize, j: usize, t: usize| {
                    let at = block * LEN + group * 32 + j * 4;
                    tokens[t].q.as_ptr().add(at).cast::<i32>().read_unaligned()
                };
                scaled_sums::<B, L, T, 1>([turned], q)[0]
            };
            let factors = (L::load_f(turned.factor.as_ptr()), L::load_f(turned.offset_factor.as_ptr()));
            for t in 0..T {
                let (n_pairs, pairs) = pairs::<B>(&tokens[t].sums.as_chunks::<12>().0[block]);
                let mut offset = L::zero();
                for i in 0..n_pairs {
                    let pair = L::splat(pairs[i]);
                    offset = L::dot_pairs(offset, L::load(turned.offsets[i].as_ptr()), pair);
                }
                let sums = (take_off::<B, L>(sums[t], offset), offset);
                let (acc, scale) = (L::load_f(accs[t].as_ptr()), L::splat_f(tokens[t].scales[block]));
                L::store_f(accs[t].as_mut_ptr(), finish::<B, L>(acc, sums, factors, scale));
            }
        }
    }

    #[inline(always)]
    unsafe fn octet<L: Lanes, const T: usize, const P: usize>(
        turned: [&Turned<L>; P],
        octet: &[Octet256],
        first: usize,
        accs: [&mut [[f32; MAX_ROWS]]; P],
    ) {
        assert!(octet.len() == 1 && first + T <= octets::LEN && accs.iter().all(|accs| accs.len() == T));
        let octet = &octet[0];
        // SAFETY: the caller's; arrays of `MAX_ROWS` hold any register, and tokens `first..first + T` are in the octet.
        unsafe {
            let mut whole = !L::SHORT_SUMS;
            let by_columns = T == 4 && L::SHORT_SUMS && B::OFFSET != Offset::Signed;
            let mut sums = [[L::zero(); T]; P];
            if let Some([a, b]) = turned.get(..2).filter(|_| by_columns) {
                whole = whole_at_once::<B>();
                let both = scaled_sums_of_both::<B, L>([a, b], octet, first);
                for p in 0..P {
                    sums[p].copy_from_slice(&both[p][..T]);
                }
            } else if L::SHORT_SUMS {
                let q = |group: usize, j: usize, t: usize| octet.q[group].four(j, first + t);
                sums = scaled_sums::<B, L, T, P>(turned, q);
            } else if L::MATRICES {
                for p in 0..P {
                    sums[p] = matrices::biased_sums::<B, L, T>(turned[p], octet, first);
                }
            } else {
                sums = biased_sums::<B, L, T, P>(turned, octet, first);
            }
            finish_octet::<B, L, T, P>(turned, octet, first, (&sums, whole), accs);
        }
    }
}
