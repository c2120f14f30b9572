//! Formats of one scale and 32 small integers: value = scale · (stored − offset) or scale · stored + minimum. They
//! differ in where the scale and the integers lie and in how 32 of them come into a register.

use std::marker::PhantomData;

use super::lanes::{Lanes, MAX_ROWS, RowPointers, short_run};
use super::matrices;
use super::octets::{self, Octet32, Octets};
use super::panel::{Ahead, Format, Token};
use super::sums32;

pub const LEN: usize = 32;
/// Blocks turned at once: 4 KB of weights beside the tokens' activations in the first-level cache.
pub const STRETCH: usize = 8;

/// What distinguishes such a format.
pub trait Block32 {
    const BYTES: usize;
    /// Of the stored integers, in magnitude.
    const LARGEST: i32;
    /// Of the stored integers less their offset, in magnitude.
    const FARTHEST: i32 = Self::LARGEST;
    /// Whether the integers are signed and went through `Lanes::signed`.
    const SIGNED: bool = false;

    /// The scale of each row: an f16 at the beginning, unless a format says otherwise.
    ///
    /// # Safety
    /// As for `Lanes`; a whole block lies at `offset` of each row.
    #[inline(always)]
    unsafe fn scale<L: Lanes>(rows: &RowPointers, offset: usize) -> L::F {
        // SAFETY: the caller's.
        unsafe { L::halves(rows, offset) }
    }

    /// Whether a multiple of the activations' sum is added.
    const HAS_MINIMUM: bool = false;

    /// The minimum of each row, where there is one.
    ///
    /// # Safety
    /// As for `scale`.
    #[inline(always)]
    unsafe fn minimum<L: Lanes>(_: &RowPointers, _: usize) -> L::F {
        // SAFETY: the caller's.
        unsafe { L::zero_f() }
    }

    /// Offset of the stored integers.
    fn offset<L: Lanes>() -> i32;

    /// The stored integers, in the arrangement of `Lanes::rows32`.
    ///
    /// # Safety
    /// As for `Lanes`; a whole block lies at `offset` of each row.
    unsafe fn integers<L: Lanes>(rows: &RowPointers, offset: usize) -> [L::I; 8];

    /// The dot product of each row with 32 activations.
    ///
    /// # Safety
    /// As for `integers`.
    unsafe fn dots<L: Lanes>(rows: &RowPointers, offset: usize, q: &[i8; LEN]) -> L::I;
}

/// acc + four products in each lane, for `Lanes::widen` to end.
///
/// # Safety
/// As for `Lanes`.
#[inline(always)]
pub unsafe fn add_dot<B: Block32, L: Lanes>(acc: L::I, w: L::I, a: L::I) -> L::I {
    // SAFETY: the caller's.
    unsafe { if B::SIGNED { L::dot_short_signed(acc, w, a) } else { L::dot_short(acc, w, a) } }
}

/// What `dots` does for a format whose integers must be arranged first.
///
/// # Safety
/// As for `Block32::dots`.
#[inline(always)]
pub unsafe fn dot_integers<B: Block32, L: Lanes>(rows: &RowPointers, offset: usize, q: &[i8; LEN]) -> L::I {
    // SAFETY: the caller's; `q` has 32 bytes.
    unsafe {
        let mut dots = B::integers::<L>(rows, offset);
        let a = L::repeat32(q.as_ptr().cast());
        for dot in &mut dots {
            let short = add_dot::<B, L>(L::zero(), *dot, a);
            *dot = L::widen(L::zero(), short);
        }
        let (first, second) = L::reduce(dots);
        L::add(first, second)
    }
}

/// Turned blocks.
#[repr(C, align(64))] // a register each, never across two cache lines
pub struct Turned<L> {
    /// (blocks, 8, rows): four bytes each
    pub w: [[[i32; MAX_ROWS]; 8]; STRETCH],
    /// (blocks, rows)
    pub scales: [[f32; MAX_ROWS]; STRETCH],
    /// (blocks, rows)
    pub minima: [[f32; MAX_ROWS]; STRETCH],
    /// (blocks, rows): where `w` holds what `Lanes::store_signed` wrote, what sums of products lack
    pub lacks: [[i32; MAX_ROWS]; STRETCH],
    lanes: PhantomData<L>,
}

/// Whether turned weights are as `Lanes::store_signed` writes them.
const fn apart<B: Block32, L: Lanes>() -> bool {
    B::SIGNED && L::SHORT_SUMS
}

impl<L: Lanes> Turned<L> {
    /// Four bytes of each row, as they were.
    ///
    /// # Safety
    /// As for `Lanes`.
    #[inline(always)]
    pub unsafe fn column<B: Block32>(&self, block: usize, j: usize) -> L::I {
        let from = self.w[block][j].as_ptr();
        // SAFETY: the caller's; an array of `MAX_ROWS` holds any register, and what was written there.
        unsafe { if apart::<B, L>() { L::load_signed(from) } else { L::load(from) } }
    }
}

/// A format of this kind, for the panel.
pub struct Blocks32<B>(PhantomData<B>);

impl<B: Block32> Format for Blocks32<B> {
    const STRETCH_LEN: usize = STRETCH * LEN;
    const BLOCK_LEN: usize = LEN;
    const BLOCK_BYTES: usize = B::BYTES;
    type Turned<L: Lanes> = Turned<L>;
    type Octet = Octet32;

    fn octets<'a>(octets: Octets<'a>) -> &'a [Octet32] {
        match octets {
            Octets::By32(octets) => octets,
            Octets::None | Octets::By256(_) => &[],
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
        let (scale, sum) = (token.scales[block], token.sums[block]);
        let q = &token.q.as_chunks::<LEN>().0[block];
        // SAFETY: the caller's.
        unsafe {
            ahead.ask::<L>(L::ROWS * B::BYTES);
            let dot = L::sub(B::dots::<L>(rows, offset, q), L::splat(B::offset::<L>() * sum));
            let row_scale = L::mul_f(B::scale::<L>(rows, offset), L::splat_f(scale));
            let acc = L::fma(L::to_f(dot), row_scale, acc);
            if !B::HAS_MINIMUM {
                return acc;
            }
            L::fma(B::minimum::<L>(rows, offset), L::splat_f(scale * sum as f32), acc)
        }
    }

    fn room<L: Lanes>() -> Turned<L> {
        Turned {
            w: [[[0; MAX_ROWS]; 8]; STRETCH],
            scales: [[0.0; MAX_ROWS]; STRETCH],
            minima: [[0.0; MAX_ROWS]; STRETCH],
            lacks: [[0; MAX_ROWS]; STRETCH],
            lanes: PhantomData,
        }
    }

    #[inline(always)]
    unsafe fn turn<L: Lanes>(turned: &mut Turned<L>, rows: &RowPointers, offset: usize, n_blocks: usize) {
        let parts = turned.w.iter_mut().zip(&mut turned.scales).zip(turned.minima.iter_mut().zip(&mut turned.lacks));
        for (block, ((w, scales), (minima, lacks))) in parts.enumerate().take(n_blocks) {
            let offset = offset + block * B::BYTES;
            // SAFETY: the caller's; an array of `MAX_ROWS` takes any register.
            unsafe {
                let columns = L::transpose(B::integers::<L>(rows, offset));
                if apart::<B, L>() {
                    let mut all = L::zero();
                    for (w, column) in w.iter_mut().zip(columns) {
                        all = L::add(all, L::store_signed(w.as_mut_ptr(), column));
                    }
                    L::store(lacks.as_mut_ptr(), all);
                } else {
                    for (w, column) in w.iter_mut().zip(columns) {
                        L::store(w.as_mut_ptr(), column);
                    }
                }
                L::store_f(scales.as_mut_ptr(), B::scale::<L>(rows, offset));
                if B::HAS_MINIMUM {
                    L::store_f(minima.as_mut_ptr(), B::minimum::<L>(rows, offset));
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn tokens<L: Lanes, const T: usize>(
        turned: &Turned<L>,
        tokens: &[Token; T],
        first: usize,
        n_blocks: usize,
        accs: &mut [[f32; MAX_ROWS]],
    ) {
        assert!(accs.len() == T && n_blocks <= STRETCH);
        // SAFETY: the caller's: each token has the activations, scales and sums of these blocks; arrays of `MAX_ROWS`
        // hold any register.
        unsafe {
            let mut acc = [L::zero_f(); T];
            for t in 0..T {
                acc[t] = L::load_f(accs[t].as_ptr());
            }
            for block in 0..n_blocks {
                let at = first + block;
                let mut dots = [L::zero(); T];
                for t in 0..T {
                    dots[t] = L::splat(-B::offset::<L>() * *tokens[t].sums.get_unchecked(at));
                }
                let q =
                    |j: usize, t: usize| tokens[t].q.as_ptr().add(at * LEN + j * 4).cast::<i32>().read_unaligned();
                let two = |i: usize, t: usize| matrices::two_of::<L, T>(tokens, t, at * LEN + i * 8);
                dots = add_block::<B, L, T, 1>([turned], block, (q, two), [dots])[0];
                let scale = L::load_f(turned.scales[block].as_ptr());
                for t in 0..T {
                    let scale = L::mul_f(scale, L::splat_f(*tokens[t].scales.get_unchecked(at)));
                    acc[t] = L::fma(L::to_f(dots[t]), scale, acc[t]);
                }
                if B::HAS_MINIMUM {
                    let minimum = L::load_f(turned.minima[block].as_ptr());
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
    unsafe fn octet<L: Lanes, const T: usize, const P: usize>(
        turned: [&Turned<L>; P],
        octet: &[Octet32],
        first: usize,
        accs: [&mut [[f32; MAX_ROWS]]; P],
    ) {
        assert!(octet.len() <= STRETCH && first + T <= octets::LEN);
        assert!(accs.iter().all(|accs| accs.len() == T));
        if L::SHORT_SUMS {
            // SAFETY: the caller's.
            return unsafe { sums32::add_octet::<B, L, T, P>(turned, octet, first, accs) };
        }
        // SAFETY: the caller's; arrays of `MAX_ROWS` hold any register, and tokens `first..first + T` are in the octet.
        unsafe {
            let mut acc = [[L::zero_f(); T]; P];
            for p in 0..P {
                for t in 0..T {
                    acc[p][t] = L::load_f(accs[p][t].as_ptr());
                }
            }
            for (block, octet) in octet.iter().enumerate() {
                let mut dots = [[L::zero(); T]; P];
                for t in 0..T {
                    let bias = bias::<B, L>(*octet.sums.get_unchecked(first + t));
                    for p in 0..P {
                        dots[p][t] = bias;
                    }
                }
                let q = |j: usize, t: usize| octet.q.four(j, first + t);
                let two = |i: usize, t: usize| matrices::two_at::<L>(octet.q.eight(i, first + t));
                dots = add_block::<B, L, T, P>(turned, block, (q, two), dots);
                for p in 0..P {
                    let row_scale = L::load_f(turned[p].scales[block].as_ptr());
                    for t in 0..T {
                        let scale = L::mul_f(row_scale, L::splat_f(*octet.scales.get_unchecked(first + t)));
                        acc[p][t] = L::fma(L::to_f(dots[p][t]), scale, acc[p][t]);
                    }
                }
                if B::HAS_MINIMUM {
                    for p in 0..P {
                        let minimum = L::load_f(turned[p].minima[block].as_ptr());
                        for t in 0..T {
                            let sum = (*octet.sums.get_unchecked(first + t) / -128) as f32;
                            let scale = *octet.scales.get_unchecked(first + t);
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

/// `dots` + the products of `T` tokens with a turned block of each panel; `q` gives four activations of a token, `two`
/// eight of it and of the next.
///
/// # Safety
/// As for `Format::tokens`.
#[inline(always)]
unsafe fn add_block<B: Block32, L: Lanes, const T: usize, const P: usize>(
    turned: [&Turned<L>; P],
    block: usize,
    (q, two): (impl Fn(usize, usize) -> i32, impl Fn(usize, usize) -> L::I),
    mut dots: [[L::I; T]; P],
) -> [[L::I; T]; P] {
    if L::MATRICES {
        for p in 0..P {
            // SAFETY: the caller's.
            dots[p] = unsafe { matrices::add_block::<L, T>(dots[p], &turned[p].w[block], &two) };
        }
        return dots;
    }
    let run = const { short_run::<L>(B::LARGEST, 8) };
    // SAFETY: the caller's.
    unsafe {
        for from in 0..8 / run {
            let mut shorts = if L::SHORT_SUMS { [[L::zero(); T]; P] } else { dots };
            for j in from * run..from * run + run {
                let mut w = [L::zero(); P];
                for p in 0..P {
                    w[p] = turned[p].column::<B>(block, j);
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
                    let wide = if L::SHORT_SUMS { L::widen(dots[p][t], shorts[p][t]) } else { shorts[p][t] };
                    dots[p][t] = wide;
                }
            }
        }
        dots
    }
}

/// What the dot product with 32 elements begins with so that their offset is taken off, given the sum of the
/// activations times −128.
///
/// # Safety
/// As for `Lanes`.
#[inline(always)]
pub unsafe fn bias<B: Block32, L: Lanes>(sum: i32) -> L::I {
    // SAFETY: the caller's.
    unsafe {
        let sum = L::splat(sum);
        match B::offset::<L>() {
            0 => L::zero(),
            8 => L::shift_right_signed::<4>(sum),
            12 => L::add(L::shift_right_signed::<4>(sum), L::shift_right_signed::<5>(sum)),
            16 => L::shift_right_signed::<3>(sum),
            128 => sum,
            offset => L::mul(L::shift_right_signed::<7>(sum), L::splat(offset)),
        }
    }
}
