//! The way through the rows of a quantised product that all its formats share. Rows are taken as many at a time as a
//! register has lanes. One token: blocks are multiplied as they lie and summed across. Several tokens: a stretch of
//! blocks is turned so that each lane holds its row, once, and then multiplied with every token. Either way the sum
//! of a row and a token is one chain of float additions from the first block to the last.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::lanes::{Lanes, MAX_ROWS, RowPointers};
use super::octets::{self, Octets};
use super::{Acts, OutTile, WeightRows};

/// Tokens whose sums are kept in registers, those of two panels: half an octet. With a whole one those of blocks that
/// are multiplied with scales would have no room in 32 registers.
const TOKENS: usize = octets::LEN / 2;
/// Most tokens whose sums are kept between stretches; the executor's tiles have no more.
const MAX_TOKENS: usize = 256;
/// Most registers' worth of rows whose sums are kept: a task of a prompt has no more at AVX-512.
const MAX_PANELS: usize = 4;
/// Activations that all rows of a task meet before the next do, tokens times elements: in the layout of octets about
/// 384 KB, which stay in the second-level cache while the rows pass.
const SLAB: usize = 256 * 1024;

const CACHE_LINE: usize = 64;
/// How far ahead of its use each of the first rows is asked for: about the latency of memory at the speed of one core.
const AHEAD: usize = 512;

/// How a format goes through one stretch of a row: as many blocks as make sense to turn at once.
pub trait Format {
    /// Bytes and elements of a stretch; the last may have fewer whole blocks.
    const STRETCH_LEN: usize;
    const BLOCK_LEN: usize;
    const BLOCK_BYTES: usize;
    /// Turned weights of a stretch.
    type Turned<L: Lanes>;
    /// Eight tokens' activations of a block.
    type Octet;

    /// Those that this format takes, if there are any.
    fn octets<'a>(octets: Octets<'a>) -> &'a [Self::Octet];

    /// acc + the products of one token with the block at `offset` of each row; `block` is its index in the row. As it
    /// uses bytes it has `ahead` ask for as many.
    ///
    /// # Safety
    /// As for `Lanes`; a whole block lies at `offset` of each row, and `token` has the activations of `block`.
    unsafe fn block<L: Lanes>(
        acc: L::F,
        rows: &RowPointers,
        offset: usize,
        token: &Token,
        block: usize,
        ahead: &mut Ahead,
    ) -> L::F;

    /// Room for the turned weights of a stretch.
    fn room<L: Lanes>() -> Self::Turned<L>;

    /// Turns `n_blocks` blocks from `offset` of each row.
    ///
    /// # Safety
    /// As for `Lanes`; whole blocks lie there.
    unsafe fn turn<L: Lanes>(
        turned: &mut Self::Turned<L>,
        rows: &RowPointers,
        offset: usize,
        n_blocks: usize,
    );

    /// Adds the products of `T` tokens with turned blocks `first..first + n_blocks` of the row to `accs`.
    ///
    /// # Safety
    /// As for `Lanes`; each token has the activations of these blocks.
    unsafe fn tokens<L: Lanes, const T: usize>(
        turned: &Self::Turned<L>,
        tokens: &[Token; T],
        first: usize,
        n_blocks: usize,
        accs: &mut [[f32; MAX_ROWS]],
    );

    /// As `tokens` for tokens `first..first + T` of an octet, of which these are the turned blocks, and `P` panels of
    /// rows: what is loaded of a token is multiplied with all of them.
    ///
    /// # Safety
    /// As for `Lanes`.
    unsafe fn octet<L: Lanes, const T: usize, const P: usize>(
        turned: [&Self::Turned<L>; P],
        octet: &[Self::Octet],
        first: usize,
        accs: [&mut [[f32; MAX_ROWS]]; P],
    );
}

/// The rows after those in work, asked for in the order in which they lie while these are used: the processor does not
/// foresee so many short streams.
pub struct Ahead {
    next: *const u8,
}

impl Ahead {
    /// Those after `rows`. Where nothing is known to come after the last rows, these again, which are at hand.
    pub fn after(w: &WeightRows, rows: Range<usize>) -> Self {
        let next = match rows.end < w.n_rows() {
            true => w.row(rows.end),
            false if w.next.is_empty() => w.row(rows.start),
            false => w.next,
        };
        Self { next: next.as_ptr() }
    }

    /// Asks for `n` more bytes, into the second-level cache. Some lines are asked for twice, which costs less than to
    /// tell them apart.
    ///
    /// # Safety
    /// As for `Lanes`.
    #[inline(always)]
    pub unsafe fn ask<L: Lanes>(&mut self, n: usize) {
        for line in (0..n).step_by(CACHE_LINE) {
            // SAFETY: the caller's; a prefetch of any address is allowed.
            unsafe { L::prefetch(self.next.wrapping_add(line)) };
        }
        self.next = self.next.wrapping_add(n);
    }
}

/// The quantised activations of one token.
#[derive(Clone, Copy)]
pub struct Token<'a> {
    /// (k)
    pub q: &'a [i8],
    pub scales: &'a [f32],
    pub sums: &'a [i32],
}

impl<'a> Token<'a> {
    #[inline(always)]
    pub fn of(acts: &Acts<'a>, t: usize) -> Self {
        Self { q: acts.q_row(t), scales: acts.scale_row(t), sums: acts.sum_row(t) }
    }
}

/// Pointers to the first byte of some rows from `first`; where rows end, the last one again.
#[inline(always)]
pub fn pointers<const N: usize>(w: &WeightRows, first: usize) -> [*const u8; N] {
    let last = w.n_rows() - 1;
    let mut rows = [std::ptr::null(); N];
    for (i, row) in rows.iter_mut().enumerate() {
        *row = w.row((first + i).min(last)).as_ptr();
    }
    rows
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

/// All rows, all tokens.
///
/// # Safety
/// As for `Lanes`.
#[inline(always)]
pub unsafe fn run<F: Format, L: Lanes>(w: WeightRows, acts: Acts, out: &mut OutTile) {
    assert!(w.k.is_multiple_of(F::BLOCK_LEN) && w.row_bytes == w.k / F::BLOCK_LEN * F::BLOCK_BYTES);
    assert!(
        acts.k == w.k && acts.q.len() == acts.n_tokens * w.k && w.bytes.len() == w.n_rows() * w.row_bytes
    );
    // SAFETY: the lengths were compared above.
    unsafe {
        match acts.n_tokens {
            1 => one_token::<F, L>(w, &Token::of(&acts, 0), out.token(0)),
            _ => many_tokens::<F, L>(w, &acts, out),
        }
    }
}

/// # Safety
/// As for `Lanes`; the token has `w.k` activations.
#[inline(always)]
unsafe fn one_token<F: Format, L: Lanes>(w: WeightRows, token: &Token, out: &mut [f32]) {
    for first in (0..w.n_rows()).step_by(L::ROWS) {
        let rows = pointers(&w, first);
        let after = (first + L::ROWS).min(w.n_rows());
        let ahead = Ahead::after(&w, first..after);
        // SAFETY: the caller's; `pointers` gives whole rows of `w`.
        let sums = unsafe { one::<F, L>(&rows, w.k / F::BLOCK_LEN, token, ahead, first == 0) };
        let out = &mut out[first..after];
        out.copy_from_slice(&sums[..out.len()]);
    }
}

/// Some panels of rows at a time, and of these all blocks of a slab of activations after those of the one before.
///
/// # Safety
/// As for `Lanes`; each token has `w.k` activations.
#[inline(always)]
unsafe fn many_tokens<F: Format, L: Lanes>(w: WeightRows, acts: &Acts, out: &mut OutTile) {
    let (mut turned, mut room) = ([F::room::<L>(), F::room::<L>()], SumsRoom::new());
    for tokens in (0..acts.n_tokens).step_by(MAX_TOKENS) {
        let tokens = tokens..(tokens + MAX_TOKENS).min(acts.n_tokens);
        let acts = acts.tokens(tokens.clone());
        for first in (0..w.n_rows()).step_by(MAX_PANELS * L::ROWS) {
            let rows = first..(first + MAX_PANELS * L::ROWS).min(w.n_rows());
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
    let slab = (SLAB / acts.n_tokens / F::STRETCH_LEN).max(1) * stretch;
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
        let stretch = F::STRETCH_LEN / F::BLOCK_LEN;
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
                    let next = next.wrapping_add(i * L::ROWS * w.row_bytes);
                    prefetch_rows::<L>(next, w.row_bytes, stretch * F::BLOCK_BYTES);
                }
                let turned = turned.each_ref().map(|turned| &**turned);
                stretch_of_tokens::<F, L, P>(turned, acts, w.k / F::BLOCK_LEN, &blocks, &mut sums);
            }
        }
    }
}

/// Asks for `len` bytes from `offset` of each row.
///
/// # Safety
/// As for `Lanes`.
#[inline(always)]
pub unsafe fn prefetch<L: Lanes>(rows: &RowPointers, offset: usize, len: usize) {
    for line in (0..len).step_by(CACHE_LINE) {
        for row in &rows[..L::ROWS] {
            // SAFETY: the caller's; a prefetch reads nothing.
            unsafe { L::prefetch(row.wrapping_add(offset + line)) }
        }
    }
}

/// As `prefetch`, of rows from `start` that lie `row_bytes` apart.
///
/// # Safety
/// As for `Lanes`.
#[inline(always)]
unsafe fn prefetch_rows<L: Lanes>(start: *const u8, row_bytes: usize, len: usize) {
    for line in (0..len).step_by(CACHE_LINE) {
        for row in 0..L::ROWS {
            // SAFETY: the caller's; a prefetch reads nothing.
            unsafe { L::prefetch(start.wrapping_add(row * row_bytes + line)) }
        }
    }
}

#[inline(always)]
unsafe fn one<F: Format, L: Lanes>(
    rows: &RowPointers,
    n_blocks: usize,
    token: &Token,
    mut ahead: Ahead,
    cold: bool,
) -> [f32; MAX_ROWS] {
    let mut sums = [0.0; MAX_ROWS];
    // SAFETY: the caller's, whose rows have `n_blocks` blocks; `sums` has room for any register.
    unsafe {
        let every = (CACHE_LINE / F::BLOCK_BYTES).max(1);
        let mut acc = L::zero_f();
        for block in 0..n_blocks {
            if cold && block % every == 0 {
                prefetch::<L>(rows, block * F::BLOCK_BYTES + AHEAD, every * F::BLOCK_BYTES);
            }
            acc = F::block::<L>(acc, rows, block * F::BLOCK_BYTES, token, block, &mut ahead);
        }
        L::store_f(sums.as_mut_ptr(), acc);
    }
    sums
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

/// Adds the products of all tokens with turned blocks `blocks` to the sums of each panel.
///
/// # Safety
/// As for `Lanes`; each token has `n_blocks` blocks of activations.
#[inline(always)]
unsafe fn stretch_of_tokens<F: Format, L: Lanes, const P: usize>(
    turned: [&F::Turned<L>; P],
    acts: &Acts,
    n_blocks: usize,
    blocks: &Range<usize>,
    sums: &mut [&mut Sums; P],
) {
    let mut t = 0;
    // SAFETY: the caller's: each token has `k` activations.
    unsafe {
        let (octets, n_octets) = (F::octets(acts.octets), acts.n_tokens / octets::LEN);
        for (i, octet) in octets.chunks_exact(n_blocks).take(n_octets).enumerate() {
            // The next tokens' blocks lie too far away for the processor to foresee; after the last tokens come the
            // first ones with the next stretch.
            let next: *const u8 = match i + 1 < n_octets {
                true => octet.as_ptr().wrapping_add(n_blocks + blocks.start).cast(),
                false => octets.as_ptr().wrapping_add(blocks.end).cast(),
            };
            let octet = &octet[blocks.clone()];
            let half = size_of_val(octet) / 2;
            for (i, first) in [0, TOKENS].into_iter().enumerate() {
                ask::<L>(next.wrapping_add(i * half), half);
                let of = t + first..t + first + TOKENS;
                let sums = sums.each_mut().map(|sums| &mut sums[of.clone()]);
                F::octet::<L, TOKENS, P>(turned, octet, first, sums);
            }
            t += octets::LEN;
        }
        for (turned, sums) in turned.into_iter().zip(sums) {
            rest_of_tokens::<F, L>(turned, acts, t, blocks, sums);
        }
    }
}

/// As `stretch_of_tokens` for the tokens from `t` on, which are in no octet.
///
/// # Safety
/// As for `stretch_of_tokens`.
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

#[cfg(target_arch = "aarch64")]
pub(crate) use super::arm::matmul_rows;
#[cfg(target_arch = "x86_64")]
pub(crate) use super::levels::matmul_rows;
