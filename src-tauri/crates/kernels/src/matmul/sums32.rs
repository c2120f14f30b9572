//! What several tokens times a turned block of 32 come to where products of bytes are added as i16: few registers, of
//! which these sums take half, so that the float sums wait in memory and each is fetched once a block.

use super::blocks32::{Block32, STRETCH, Turned, add_dot, bias};
use super::lanes::{Lanes, MAX_ROWS, short_run};
use super::octets::{self, Octet32};

/// As `Format::octet`.
///
/// # Safety
/// As for `Format::octet`.
#[inline(always)]
pub unsafe fn add_octet<B: Block32, L: Lanes, const T: usize, const P: usize>(
    turned: [&Turned<L>; P],
    octet: &[Octet32],
    first: usize,
    accs: [&mut [[f32; MAX_ROWS]]; P],
) {
    assert!(octet.len() <= STRETCH && first + T <= octets::LEN);
    assert!(accs.iter().all(|accs| accs.len() == T));
    // SAFETY: the caller's; arrays of `MAX_ROWS` hold any register, tokens `first..first + T` are in the octet and have
    // a sum in each of `accs`.
    unsafe {
        for (block, octet) in octet.iter().enumerate() {
            let dots = dots::<B, L, T, P>(turned, block, octet, first);
            for t in 0..T {
                let token_scale = *octet.scales.get_unchecked(first + t);
                for p in 0..P {
                    let dot = dots[p][t];
                    let scale = L::mul_f(L::load_f(turned[p].scales[block].as_ptr()), L::splat_f(token_scale));
                    let sum = accs[p].get_unchecked_mut(t).as_mut_ptr();
                    let mut acc = L::fma(L::to_f(dot), scale, L::load_f(sum));
                    if B::HAS_MINIMUM {
                        let token_sum = (*octet.sums.get_unchecked(first + t) / -128) as f32;
                        let minimum = L::load_f(turned[p].minima[block].as_ptr());
                        acc = L::fma(minimum, L::splat_f(token_scale * token_sum), acc);
                    }
                    L::store_f(sum, acc);
                }
            }
        }
    }
}

/// (panels, tokens): the products of a turned block of each panel with tokens `first..first + T` of an octet, without
/// offset.
///
/// # Safety
/// As for `add_octet`.
#[inline(always)]
unsafe fn dots<B: Block32, L: Lanes, const T: usize, const P: usize>(
    turned: [&Turned<L>; P],
    block: usize,
    octet: &Octet32,
    first: usize,
) -> [[L::I; T]; P] {
    // SAFETY: the caller's; columns and activations lie as `Lanes::columns` says.
    unsafe {
        let mut dots = [[L::zero(); T]; P];
        if let Some([a, b]) = turned.get(..2).filter(|_| T == 4) {
            let both = both::<B, L>([a, b], block, octet, first);
            for p in 0..P {
                dots[p].copy_from_slice(&both[p][..T]);
            }
            return dots;
        }
        let run = const { short_run::<L>(B::LARGEST, 8) };
        for t in 0..T {
            let bias = bias::<B, L>(*octet.sums.get_unchecked(first + t));
            for p in 0..P {
                dots[p][t] = bias;
                for from in (0..8).step_by(run) {
                    let mut short = L::zero();
                    for j in from..from + run {
                        let a = L::splat(octet.q.four(j, first + t));
                        short = add_dot::<B, L>(short, turned[p].column::<B>(block, j), a);
                    }
                    dots[p][t] = L::widen(dots[p][t], short);
                }
            }
        }
        dots
    }
}

/// As `dots` of two panels and four tokens.
///
/// # Safety
/// As for `dots`.
#[inline(always)]
unsafe fn both<B: Block32, L: Lanes>(
    turned: [&Turned<L>; 2],
    block: usize,
    octet: &Octet32,
    first: usize,
) -> [[L::I; 4]; 2] {
    let w: [*const i32; 2] = turned.map(|turned| turned.w[block].as_ptr().cast());
    // Short sums may overflow on their way where there is room at the end, their offset taken off.
    let fits = const { short_run::<L>(B::FARTHEST, 8) == 8 };
    // SAFETY: the caller's.
    unsafe {
        let q = (&raw const octet.q).cast::<i32>().add(first);
        if B::SIGNED {
            let mut dots = L::signed_columns(w, q);
            for p in 0..2 {
                let lacks = L::load(turned[p].lacks[block].as_ptr());
                for dot in &mut dots[p] {
                    *dot = L::add(*dot, lacks);
                }
            }
            return dots;
        }
        let offset = B::offset::<L>();
        if fits {
            let mut dots = L::columns::<8>(w, q);
            for t in 0..4 {
                let less = L::mul_short(L::splat(*octet.short_sums.get_unchecked(first + t)), -offset as i16);
                for p in 0..2 {
                    let short = if offset == 0 { dots[p][t] } else { L::add_short(dots[p][t], less) };
                    dots[p][t] = L::widen(L::zero(), short);
                }
            }
            return dots;
        }
        let (mut dots, half) = (L::columns::<4>(w, q), 4);
        let more = L::columns::<4>(w.map(|w| w.add(half * MAX_ROWS)), q.add(half * octets::LEN));
        for t in 0..4 {
            let bias = bias::<B, L>(*octet.sums.get_unchecked(first + t));
            for p in 0..2 {
                dots[p][t] = L::widen(L::widen(bias, dots[p][t]), more[p][t]);
            }
        }
        dots
    }
}
