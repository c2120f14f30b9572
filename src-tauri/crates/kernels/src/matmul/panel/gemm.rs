//! Several tokens: a stretch of blocks is turned so that each lane holds its row, once for all of them. Rows go side by
//! side through a slab of the tokens' activations, which stays in the second-level cache.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::{CACHE_LINE, Format, Token, pointers};
use crate::matmul::lanes::{Lanes, MAX_ROWS, RowPointers};
use crate::matmul::octets;
use crate::matmul::{Acts, OutTile, WeightRows};

/// Tokens whose sums are kept in registers, those of two panels: half an octet. With a whole one those of blocks that
/// are multiplied with scales would have no room in 32 registers.
const TOKENS: usize = octets::LEN / 2;
/// Most tokens whose sums are kept between stretches; the executor's tiles have no more.
const MAX_TOKENS: usize = 256;
/// Most registers' worth of rows whose sums are kept: a task of a prompt has no more at AVX-512.
const MAX_PANELS: usize = 8;
/// Activations that all rows at once meet before the next do, tokens times elements: in the layout of octets about
/// 384 KB, which stay in the second-level cache while the rows pass.
const SLAB: usize = 256 * 1024;

/// Registers' worth of rows whose sums are kept. Those of a short register take the same room, beside the same
/// activations in a cache that is smaller where registers are short.
const fn panels_at_once<L: Lanes>() -> usize {
    MAX_PANELS * L::ROWS / MAX_ROWS
}

/// (tokens, rows): sums between stretches.
type Sums = [[f32; MAX_ROWS]];

/// Room for the sums of some panels of rows. Of uninitialised memory, as to clear it costs as much as some blocks.
#[repr(align(64))]
struct SumsRoom([[MaybeUninit<[f32; MAX_ROWS]>; MAX_TOKENS]; MAX_PANELS]);

impl SumsRoom {
    fn new() -> Self {
        Self([const { [const { MaybeUninit::uninit() }; MAX_TOKENS] }; MAX_PANELS])
    }

    /// Sums of `n_tokens` for each panel, zero.
    fn zeroed(&mut self, n_tokens: usize) -> [&mut Sums; MAX_PANELS] {
        self.0.each_mut().map(|panel| {
            for sums in &mut panel[..n_tokens] {
                sums.write([0.0; MAX_ROWS]);
            }
            // SAFETY: written just now.
            unsafe { panel[..n_tokens].assume_init_mut() }
        })
    }
}

/// Some panels of rows at a time, and of these all blocks of a slab of activations after those of the one before.
///
/// # Safety
/// As for `Lanes`; each token has `w.k` activations.
#[inline(always)]
pub unsafe fn many_tokens<F: Format, L: Lanes>(w: WeightRows, acts: &Acts, out: &mut OutTile) {
    let (mut turned, mut room) = ([F::room::<L>(), F::room::<L>()], SumsRoom::new());
    for tokens in (0..acts.n_tokens).step_by(MAX_TOKENS) {
        let tokens = tokens..(tokens + MAX_TOKENS).min(acts.n_tokens);
        let acts = acts.tokens(tokens.clone());
        let at_once = panels_at_once::<L>() * L::ROWS;
        for first in (0..w.n_rows()).step_by(at_once) {
            let rows = first..(first + at_once).min(w.n_rows());
            let mut sums = room.zeroed(tokens.len());
            // SAFETY: the caller's.
            unsafe { panels::<F, L>(&w, &rows, &acts, &mut turned, &mut sums) };
            for t in 0..tokens.len() {
                let out = &mut out.token(tokens.start + t)[rows.clone()];
                for (out, sums) in out.chunks_mut(L::ROWS).zip(&sums) {
                    match <&mut [f32; MAX_ROWS]>::try_from(&mut *out) {
                        Ok(whole) => *whole = sums[t],
                        Err(_) => out.copy_from_slice(&sums[t][..out.len()]),
                    }
                }
            }
        }
    }
}

/// Adds the products of rows `rows` to the sums of each panel of them.
///
/// # Safety
/// As for `Lanes`; each token has `w.k` activations.
#[inline(always)]
unsafe fn panels<F: Format, L: Lanes>(
    w: &WeightRows,
    rows: &Range<usize>,
    acts: &Acts,
    turned: &mut [F::Turned<L>; 2],
    sums: &mut [&mut Sums; MAX_PANELS],
) {
    let n_blocks = w.k / F::BLOCK_LEN;
    let stretch = F::STRETCH_LEN / F::BLOCK_LEN;
    let usual = (SLAB / acts.n_tokens / F::STRETCH_LEN).max(1) * stretch;
    // A short rest goes with the others.
    let n_slabs = n_blocks.saturating_sub(usual / 4).div_ceil(usual).max(1);
    let slab = n_blocks.div_ceil(n_slabs).next_multiple_of(stretch);
    for slab in (0..n_blocks).step_by(slab).map(|first| first..(first + slab).min(n_blocks)) {
        let mut first = rows.start;
        for sums in sums.chunks_mut(L::PANELS) {
            let task = Task { w, rows, first, slab: &slab, acts };
            // SAFETY: the caller's.
            unsafe {
                match sums {
                    [a, b] if first + L::ROWS < rows.end => {
                        let [x, y] = turned;
                        task.run::<F, L, 2>([x, y], [a, b]);
                    }
                    [a, ..] if first < rows.end => task.run::<F, L, 1>([&mut turned[0]], [a]),
                    _ => break,
                }
            }
            first += L::PANELS * L::ROWS;
        }
    }
}

/// Some panels of rows from `first` on, which are among `rows`, and the blocks `slab` of them.
struct Task<'a> {
    w: &'a WeightRows<'a>,
    rows: &'a Range<usize>,
    first: usize,
    slab: &'a Range<usize>,
    acts: &'a Acts<'a>,
}

impl Task<'_> {
    /// Adds the products of `P` panels to their sums, one stretch after another.
    ///
    /// # Safety
    /// As for `panels`.
    #[inline(always)]
    unsafe fn run<F: Format, L: Lanes, const P: usize>(
        &self,
        turned: [&mut F::Turned<L>; P],
        mut sums: [&mut Sums; P],
    ) {
        let Self { w, rows, first, slab, acts } = *self;
        let (stretch, is_first) = (F::STRETCH_LEN / F::BLOCK_LEN, first == rows.start);
        let panels: [RowPointers; P] = std::array::from_fn(|i| pointers(w, first + i * L::ROWS));
        // Where the blocks come from after these: the next rows, or the first ones' next slab.
        let next = match first + P * L::ROWS < rows.end {
            true => panels[0][0].wrapping_add(P * L::ROWS * w.row_bytes + slab.start * F::BLOCK_BYTES),
            false => w.bytes.as_ptr().wrapping_add(rows.start * w.row_bytes + slab.end * F::BLOCK_BYTES),
        };
        for first in slab.clone().step_by(stretch) {
            let blocks = first..(first + stretch).min(slab.end);
            // The next stretch comes while the tokens pass.
            let next = match blocks.end < slab.end {
                true => panels[0][0].wrapping_add(blocks.end * F::BLOCK_BYTES),
                false => next,
            };
            // SAFETY: the caller's: the rows have these blocks.
            unsafe {
                for i in 0..P {
                    F::turn::<L>(turned[i], &panels[i], blocks.start * F::BLOCK_BYTES, blocks.len());
                }
                let coming = Coming { at: next, row_bytes: w.row_bytes, n_rows: P * L::ROWS };
                let turned = turned.each_ref().map(|turned| &**turned);
                let pass = Pass { acts, n_blocks: w.k / F::BLOCK_LEN, blocks, is_first };
                pass.run::<F, L, P>(turned, coming, &mut sums);
            }
        }
    }
}

/// Rows that are used next, of each one stretch: asked for a few at a time while tokens pass, as a core has only so many
/// lines under way.
struct Coming {
    /// in the first of the rows
    at: *const u8,
    row_bytes: usize,
    n_rows: usize,
}

impl Coming {
    /// Asks for `len` bytes of each of the next rows, at most `n`.
    ///
    /// # Safety
    /// As for `Lanes`.
    #[inline(always)]
    unsafe fn ask<L: Lanes>(&mut self, n: usize, len: usize) {
        let n = n.min(self.n_rows);
        for row in 0..n {
            // SAFETY: the caller's.
            unsafe { ask::<L>(self.at.wrapping_add(row * self.row_bytes), len) }
        }
        self.n_rows -= n;
        self.at = self.at.wrapping_add(n * self.row_bytes);
    }
}

/// Asks for `len` bytes.
///
/// # Safety
/// As for `Lanes`.
#[inline(always)]
unsafe fn ask<L: Lanes>(start: *const u8, len: usize) {
    for line in (0..len).step_by(CACHE_LINE) {
        // SAFETY: the caller's; a prefetch reads nothing.
        unsafe { L::prefetch(start.wrapping_add(line)) }
    }
}

/// All tokens with some turned blocks.
struct Pass<'a> {
    acts: &'a Acts<'a>,
    /// of a row
    n_blocks: usize,
    /// those that are turned
    blocks: Range<usize>,
    /// whether no rows before met these activations, which then come from farther away than the second-level cache
    is_first: bool,
}

impl Pass<'_> {
    /// Adds the products of all tokens with the turned blocks to the sums of each panel.
    ///
    /// # Safety
    /// As for `Lanes`; each token has `n_blocks` blocks of activations.
    #[inline(always)]
    unsafe fn run<F: Format, L: Lanes, const P: usize>(
        &self,
        turned: [&F::Turned<L>; P],
        mut coming: Coming,
        sums: &mut [&mut Sums; P],
    ) {
        let Self { acts, n_blocks, blocks, is_first } = self;
        let (octets, n_octets) = (F::octets(acts.octets), acts.n_tokens / octets::LEN);
        let n_halves = (n_octets * octets::LEN / TOKENS).max(1);
        let (some, len) = (coming.n_rows.div_ceil(n_halves), F::STRETCH_LEN / F::BLOCK_LEN * F::BLOCK_BYTES);
        let mut t = 0;
        // SAFETY: the caller's: each token has `k` activations.
        unsafe {
            for (i, octet) in octets.chunks_exact(*n_blocks).take(n_octets).enumerate() {
                // The next tokens' blocks lie too far away for the processor to foresee; after the last tokens come
                // the first ones with the next stretch.
                let next: *const u8 = match i + 1 < n_octets {
                    true => octet.as_ptr().wrapping_add(n_blocks + blocks.start).cast(),
                    false => octets.as_ptr().wrapping_add(blocks.end).cast(),
                };
                let octet = &octet[blocks.clone()];
                let half = size_of_val(octet) / 2;
                for (i, first) in [0, TOKENS].into_iter().enumerate() {
                    if *is_first {
                        ask::<L>(next.wrapping_add(i * half), half);
                    }
                    coming.ask::<L>(some, len);
                    let of = t + first..t + first + TOKENS;
                    let sums = sums.each_mut().map(|sums| &mut sums[of.clone()]);
                    F::octet::<L, TOKENS, P>(turned, octet, first, sums);
                }
                t += octets::LEN;
            }
            coming.ask::<L>(coming.n_rows, len);
            for (turned, sums) in turned.into_iter().zip(sums) {
                rest_of_tokens::<F, L>(turned, acts, t, blocks, sums);
            }
        }
    }
}

/// As `Pass::run` of one panel for the tokens from `t` on, which are in no octet.
///
/// # Safety
/// As for `Pass::run`.
#[inline(always)]
unsafe fn rest_of_tokens<F: Format, L: Lanes>(
    turned: &F::Turned<L>,
    acts: &Acts,
    mut t: usize,
    blocks: &Range<usize>,
    sums: &mut Sums,
) {
    let (first, n) = (blocks.start, blocks.len());
    // SAFETY: the caller's.
    unsafe {
        while acts.n_tokens - t >= 4 {
            group::<F, L, 4>(turned, acts, t, first, n, sums);
            t += 4;
        }
        if L::MATRICES && acts.n_tokens - t >= 2 {
            group::<F, L, 2>(turned, acts, t, first, n, sums);
            t += 2;
        }
        while acts.n_tokens > t {
            group::<F, L, 1>(turned, acts, t, first, n, sums);
            t += 1;
        }
    }
}

/// # Safety
/// As for `Lanes`; the tokens have the activations of these blocks.
#[inline(always)]
unsafe fn group<F: Format, L: Lanes, const T: usize>(
    turned: &F::Turned<L>,
    acts: &Acts,
    t: usize,
    first: usize,
    n: usize,
    sums: &mut Sums,
) {
    let mut tokens = [Token::of(acts, t); T];
    for (i, token) in tokens.iter_mut().enumerate() {
        *token = Token::of(acts, t + i);
    }
    // SAFETY: the caller's.
    unsafe { F::tokens::<L, T>(turned, &tokens, first, n, &mut sums[t..t + T]) }
}

