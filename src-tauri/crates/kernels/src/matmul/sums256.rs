//! What several tokens times a turned block of 256 come to: whole numbers first, exact in any order, then the block's
//! float addition.

use std::ops::Range;

use super::blocks256::{Block256, GROUPS, Offset, Turned, add_dot, finish, take_off};
use super::lanes::{GroupScales, Groups, Lanes, MAX_ROWS, short_run};
use super::octets::{self, Octet256};

/// The scaled integers of a block, offset and all, times `T` tokens; `q` gives four activations of a token.
///
/// # Safety
/// As for `Format::tokens`.
#[inline(always)]
pub unsafe fn scaled_sums<B: Block256, L: Lanes, const T: usize, const P: usize>(
    turned: [&Turned<L>; P],
    q: impl Fn(usize, usize, usize) -> i32,
) -> [[L::I; T]; P] {
    let under_a_scale = if B::SCALES_BY_16 { 4 } else { 8 };
    let run = const { short_run::<L>(B::LARGEST, if B::SCALES_BY_16 { 4 } else { 8 }) };
    // SAFETY: the caller's; arrays of `MAX_ROWS` hold any register.
    unsafe {
        let mut sums = [[L::zero(); T]; P];
        for group in 0..GROUPS {
            for from in 0..8 / run {
                let mut shorts = [[L::zero(); T]; P];
                for j in from * run..from * run + run {
                    let mut w = [L::zero(); P];
                    for p in 0..P {
                        w[p] = L::load(turned[p].w[group][j].as_ptr());
                    }
                    for t in 0..T {
                        let a = L::splat(q(group, j, t));
                        for p in 0..P {
                            shorts[p][t] = add_dot::<L>(B::OFFSET, shorts[p][t], w[p], a);
                        }
                    }
                }
                let half = from * run / under_a_scale;
                for p in 0..P {
                    let scale = L::load(turned[p].scales[group * 2 + half].as_ptr());
                    for t in 0..T {
                        sums[p][t] = L::widen_scaled(sums[p][t], shorts[p][t], scale);
                    }
                }
            }
        }
        sums
    }
}

/// As `scaled_sums` of two panels and tokens `first..first + 4` of an octet; where `whole_at_once`, without offset.
///
/// # Safety
/// As for `Format::octet`.
#[inline(always)]
pub unsafe fn scaled_sums_of_both<B: Block256, L: Lanes>(
    turned: [&Turned<L>; 2],
    octet: &Octet256,
    first: usize,
) -> [[L::I; 4]; 2] {
    // SAFETY: the caller's; columns and activations lie as `Lanes::columns` says.
    unsafe {
        let from = Groups {
            w: turned.map(|turned| turned.w.as_ptr().cast()),
            q: octet.q.as_ptr().cast::<i32>().add(first),
            scales: turned.map(|turned| turned.scales.as_ptr().cast()),
            less: octet.short_sums.as_ptr().cast::<i32>().add(first),
        };
        L::groups(const { group_scales::<B, L>() }, GROUPS, from)
    }
}

const fn group_scales<B: Block256, L: Lanes>() -> GroupScales {
    match (B::SCALES_BY_16, short_run::<L>(B::LARGEST, 8) == 8) {
        (true, _) if whole_at_once::<B>() => GroupScales::By16Less,
        (true, _) => GroupScales::By16,
        (false, true) => GroupScales::By32,
        (false, false) => GroupScales::By32InHalves,
    }
}

/// Whether the offset is taken off short sums, which may overflow on their way as there is room at the end: four
/// columns of 0..=63 have none, of −32..=31 they have.
pub const fn whole_at_once<B: Block256>() -> bool {
    matches!(B::OFFSET, Offset::ThirtyTwo)
}

/// As `scaled_sums` of tokens `first..first + T` of an octet, their offset (but no minima) taken off.
///
/// # Safety
/// As for `Format::octet`.
#[inline(always)]
pub unsafe fn biased_sums<B: Block256, L: Lanes, const T: usize, const P: usize>(
    turned: [&Turned<L>; P],
    octet: &Octet256,
    first: usize,
) -> [[L::I; T]; P] {
    // Columns under a scale, of 8 to a group, and scales of 16 elements between one and the next.
    let (n_columns, step) = if B::SCALES_BY_16 { (4, 1) } else { (8, 2) };
    // SAFETY: the caller's; arrays of `MAX_ROWS` hold any register.
    unsafe {
        let mut sums = [[L::zero(); T]; P];
        for two in 0..GROUPS * 8 / n_columns / 2 {
            // The dot products under two scales take turns: those under one would wait for each other.
            let mut dots = [[[L::zero(); T]; P]; 2];
            for i in 0..2 {
                for t in 0..T {
                    let bias = biases::<B, L>(octet, (two * 2 + i) * step..(two * 2 + i + 1) * step, first + t);
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
                        w[p] = L::load(turned[p].w[group][j].as_ptr());
                    }
                    for t in 0..T {
                        let a = L::splat(octet.q[group].four(j, first + t));
                        for p in 0..P {
                            dots[i][p][t] = add_dot::<L>(B::OFFSET, dots[i][p][t], w[p], a);
                        }
                    }
                }
            }
            for i in 0..2 {
                for p in 0..P {
                    let scale = L::load(turned[p].scales[(two * 2 + i) * step].as_ptr());
                    for t in 0..T {
                        sums[p][t] = L::add(sums[p][t], L::mul(dots[i][p][t], scale));
                    }
                }
            }
        }
        sums
    }
}

/// What dot products with all of `sixteens` of token `t` begin with.
///
/// # Safety
/// As for `Format::octet`.
#[inline(always)]
unsafe fn biases<B: Block256, L: Lanes>(octet: &Octet256, sixteens: Range<usize>, t: usize) -> L::I {
    // SAFETY: the caller's.
    unsafe {
        let mut all = L::zero();
        for i in sixteens {
            all = L::add(all, bias::<B, L>(L::splat(*octet.sums[i].get_unchecked(t))));
        }
        all
    }
}

/// Adds a block's sums of `T` tokens of an octet to `accs`, of each panel. Where `whole`, they have no offset any more.
///
/// # Safety
/// As for `Format::octet`.
#[inline(always)]
pub unsafe fn finish_octet<B: Block256, L: Lanes, const T: usize, const P: usize>(
    turned: [&Turned<L>; P],
    octet: &Octet256,
    first: usize,
    (sums, whole): (&[[L::I; T]; P], bool),
    accs: [&mut [[f32; MAX_ROWS]]; P],
) {
    // SAFETY: the caller's; arrays of `MAX_ROWS` hold any register.
    unsafe {
        let mut offsets = [[L::zero(); T]; P];
        if B::OFFSET == Offset::Minima || !whole && B::OFFSET != Offset::Signed {
            let by_16 = B::SCALES_BY_16 || B::OFFSET != Offset::Minima;
            let pairs: &[[i32; octets::LEN]] = if by_16 { &octet.pairs_of_16 } else { &octet.pairs_of_32 };
            for (i, pairs) in pairs.iter().enumerate() {
                let mut offset = [L::zero(); P];
                for p in 0..P {
                    offset[p] = L::load(turned[p].offsets[i].as_ptr());
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
            factors[p] = (L::load_f(turned[p].factor.as_ptr()), L::load_f(turned[p].offset_factor.as_ptr()));
        }
        for t in 0..T {
            let scale = L::splat_f(*octet.scales.get_unchecked(first + t));
            for p in 0..P {
                let acc = L::load_f(accs[p][t].as_ptr());
                let (sum, offset) = (sums[p][t], offsets[p][t]);
                let sum = if whole { sum } else { take_off::<B, L>(sum, offset) };
                let acc = finish::<B, L>(acc, (sum, offset), factors[p], scale);
                L::store_f(accs[p][t].as_mut_ptr(), acc);
            }
        }
    }
}

/// What the dot product with 16 elements begins with so that their offset is taken off, given the sum of the
/// activations times −32.
///
/// # Safety
/// As for `Lanes`.
#[inline(always)]
pub unsafe fn bias<B: Block256, L: Lanes>(sum: L::I) -> L::I {
    // SAFETY: the caller's.
    unsafe {
        match B::OFFSET {
            Offset::Four => L::shift_right_signed::<3>(sum),
            Offset::ThirtyTwo => sum,
            Offset::Signed if L::SIGNED_BIAS == 128 => L::shift_left::<2>(sum),
            Offset::Signed | Offset::Minima => L::zero(),
        }
    }
}
