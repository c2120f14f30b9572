//! What several tokens times a turned block of 256 come to: whole numbers first, exact in any order, then the block's
//! float addition.

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
    // SAFETY: the caller's; arrays of `MAX_ROWS` hold any register.
    unsafe {
        let mut sums = [[L::zero(); T]; P];
        for group in 0..GROUPS {
            let mut dots = [[L::zero(); T]; P];
            for half in 0..2 {
                for t in 0..T {
                    let sum = L::splat(*octet.sums[group * 2 + half].get_unchecked(first + t));
                    let bias = bias::<B, L>(sum);
                    for p in 0..P {
                        // Without scales by 16 both halves add into one.
                        let anew = half == 0 || B::SCALES_BY_16;
                        dots[p][t] = if anew { bias } else { L::add(dots[p][t], bias) };
                    }
                }
                for j in half * 4..half * 4 + 4 {
                    let mut w = [L::zero(); P];
                    for p in 0..P {
                        w[p] = L::load(turned[p].w[group][j].as_ptr());
                    }
                    for t in 0..T {
                        let a = L::splat(octet.q[group].four(j, first + t));
                        for p in 0..P {
                            dots[p][t] = add_dot::<L>(B::OFFSET, dots[p][t], w[p], a);
                        }
                    }
                }
                if half == 1 || B::SCALES_BY_16 {
                    let which = if B::SCALES_BY_16 { half } else { 0 };
                    for p in 0..P {
                        let scale = L::load(turned[p].scales[group * 2 + which].as_ptr());
                        for t in 0..T {
                            sums[p][t] = L::add(sums[p][t], L::mul(dots[p][t], scale));
                        }
                    }
                }
            }
        }
        sums
    }
}

/// Adds a block's sums of `T` tokens of an octet to `accs`. Where `whole`, they have no offset any more.
///
/// # Safety
/// As for `Format::octet`.
#[inline(always)]
pub unsafe fn finish_octet<B: Block256, L: Lanes, const T: usize>(
    turned: &Turned<L>,
    octet: &Octet256,
    first: usize,
    (sums, whole): (&[L::I; T], bool),
    accs: &mut [[f32; MAX_ROWS]],
) {
    // SAFETY: the caller's; arrays of `MAX_ROWS` hold any register.
    unsafe {
        let factors = (L::load_f(turned.factor.as_ptr()), L::load_f(turned.offset_factor.as_ptr()));
        let mut offsets = [L::zero(); T];
        if B::OFFSET == Offset::Minima || !whole && B::OFFSET != Offset::Signed {
            let by_16 = B::SCALES_BY_16 || B::OFFSET != Offset::Minima;
            let pairs: &[[i32; octets::LEN]] = if by_16 { &octet.pairs_of_16 } else { &octet.pairs_of_32 };
            for (offset, pairs) in turned.offsets.iter().zip(pairs) {
                let offset = L::load(offset.as_ptr());
                for t in 0..T {
                    let pair = L::splat(*pairs.get_unchecked(first + t));
                    offsets[t] = L::dot_pairs(offsets[t], offset, pair);
                }
            }
        }
        for t in 0..T {
            let (acc, scale) = (L::load_f(accs[t].as_ptr()), *octet.scales.get_unchecked(first + t));
            let sum = if whole { sums[t] } else { take_off::<B, L>(sums[t], offsets[t]) };
            let acc = finish::<B, L>(acc, (sum, offsets[t]), factors, L::splat_f(scale));
            L::store_f(accs[t].as_mut_ptr(), acc);
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
