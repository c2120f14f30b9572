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
                let bias = bias::<B, L>(*octet.sums.get_unchecked(first + t));
                let token_scale = *octet.scales.get_unchecked(first + t);
                for p in 0..P {
                    let dot = L::add(bias, L::widen(dots.wide[p][t], dots.short[p][t]));
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

/// (panels, tokens): the products of a block with each token, offset and all.
struct Dots<L: Lanes, const T: usize, const P: usize> {
    wide: [[L::I; T]; P],
    /// What is to be widened and added yet.
    short: [[L::I; T]; P],
}

/// Of a turned block of each panel and tokens `first..first + T` of an octet. Not by `add_block`, which widens all of
/// them at the end: widened one token at a time, beside its float part, the loop is 4 % faster.
///
/// # Safety
/// As for `add_octet`.
#[inline(always)]
unsafe fn dots<B: Block32, L: Lanes, const T: usize, const P: usize>(
    turned: [&Turned<L>; P],
    block: usize,
    octet: &Octet32,
    first: usize,
) -> Dots<L, T, P> {
    let run = const { short_run::<L>(B::LARGEST, 8) };
    // SAFETY: the caller's.
    unsafe {
        let mut dots = Dots::<L, T, P> { wide: [[L::zero(); T]; P], short: [[L::zero(); T]; P] };
        for j in 0..8 {
            if j > 0 && j % run == 0 {
                for p in 0..P {
                    for t in 0..T {
                        dots.wide[p][t] = L::widen(dots.wide[p][t], dots.short[p][t]);
                        dots.short[p][t] = L::zero();
                    }
                }
            }
            let w = turned.map(|turned| L::load(turned.w[block][j].as_ptr()));
            for t in 0..T {
                let a = L::splat(octet.q.four(j, first + t));
                for p in 0..P {
                    dots.short[p][t] = add_dot::<B, L>(dots.short[p][t], w[p], a);
                }
            }
        }
        dots
    }
}
