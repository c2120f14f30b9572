//! The way through the rows of a quantised product that all its formats share. Rows are taken as many at a time as a
//! register has lanes. One token: blocks are multiplied as they lie and summed across. Several tokens: a stretch of
//! blocks is transposed so that each lane holds its row, once, and then multiplied with every token. Either way the sum
//! of a row and a token is one chain of float additions from the first block to the last.

use std::ops::Range;

mod gemm;

use super::simd::{Simd, MAX_ROWS, RowPointers};
use super::packed_activations::PackedActivationsRef;
use super::{Activations, OutTile, WeightRows};

/// Tokens up to which rows are faster gone through for each of them, while they are in the first-level cache, than
/// transposed once for all.
pub const GEMV_MAX_TOKENS: usize = 4;

const CACHE_LINE: usize = 64;
/// Bytes between what is used and what is prefetch_bytes for meanwhile: some hundred nanoseconds of what a core reads.
const PREFETCH_DISTANCE_BYTES: usize = 16 * 1024;
/// How far ahead of its use each of the first rows is prefetch_bytes for: about the latency of memory at the speed of one core.
const COLD_PREFETCH_BYTES: usize = 512;

/// How a format goes through one stretch of a row: as many blocks as make sense to turn at once.
pub trait BlockFormat {
    /// Bytes and elements of a stretch; the last may have fewer whole blocks.
    const K_TILE_LEN: usize;
    const BLOCK_LEN: usize;
    const BLOCK_BYTES: usize;
    /// Transposed weights of a stretch.
    type Transposed<L: Simd>;
    /// Eight tokens' activations of a block.
    type PackedBlock;

    /// Those that this format takes, if there are any.
    fn packed_blocks<'a>(packed: PackedActivationsRef<'a>) -> &'a [Self::PackedBlock];

    /// acc + the products of one token with the block at `offset` of each row; `block` is its index in the row. As it
    /// uses bytes it has `ahead` ask for as many.
    ///
    /// # Safety
    /// As for `Simd`; a whole block lies at `offset` of each row, and `token` has the activations of `block`.
    unsafe fn multiply_block<L: Simd>(
        acc: L::F,
        rows: &RowPointers,
        offset: usize,
        token: &TokenActivations,
        block: usize,
        prefetcher: &mut RowPrefetcher,
    ) -> L::F;

    /// Room for the transposed weights of a stretch.
    fn zeroed_transposed<L: Simd>() -> Self::Transposed<L>;

    /// Turns `n_blocks` blocks from `offset` of each row.
    ///
    /// # Safety
    /// As for `Simd`; whole blocks lie there.
    unsafe fn transpose_blocks<L: Simd>(
        transposed: &mut Self::Transposed<L>,
        rows: &RowPointers,
        offset: usize,
        n_blocks: usize,
    );

    /// Adds the products of `T` tokens with transposed blocks `first..first + n_blocks` of the row to `accs`.
    ///
    /// # Safety
    /// As for `Simd`; each token has the activations of these blocks.
    unsafe fn multiply_tokens<L: Simd, const T: usize>(
        transposed: &Self::Transposed<L>,
        tokens: &[TokenActivations; T],
        first: usize,
        n_blocks: usize,
        accs: &mut [[f32; MAX_ROWS]],
    );

    /// As `tokens` for tokens `first..first + T` of an packed, of which these are the transposed blocks, and `P` panels of
    /// rows: what is loaded of a token is multiplied with all of them.
    ///
    /// # Safety
    /// As for `Simd`.
    unsafe fn multiply_packed<L: Simd, const T: usize, const P: usize>(
        transposed: [&Self::Transposed<L>; P],
        packed: &[Self::PackedBlock],
        first: usize,
        accs: [&mut [[f32; MAX_ROWS]]; P],
    );
}

/// The rows after those in work, prefetch_bytes for in the order in which they lie while these are used: the processor does not
/// foresee so many short streams.
pub struct RowPrefetcher {
    next: *const u8,
}

impl RowPrefetcher {
    /// Those after `rows`, and after as many more that what is prefetch_bytes for has time to come. Beyond the last rows lies what
    /// comes next; where nothing is known to, these rows again, which are at hand.
    pub fn after(w: &WeightRows, rows: Range<usize>) -> Self {
        let in_work = rows.len() * w.row_bytes;
        let start = rows.end * w.row_bytes + PREFETCH_DISTANCE_BYTES.saturating_sub(in_work);
        let next = match start.checked_sub(w.bytes.len()) {
            None => w.bytes[start..].as_ptr(),
            Some(_) if w.next.is_empty() => w.row(rows.start).as_ptr(),
            Some(beyond) => w.next.as_ptr().wrapping_add(beyond),
        };
        Self { next }
    }

    /// Asks for `n` more bytes, into the second-level cache. Some lines are prefetch_bytes for twice, which costs less than to
    /// tell them apart.
    ///
    /// # Safety
    /// As for `Simd`.
    #[inline(always)]
    pub unsafe fn prefetch<L: Simd>(&mut self, n: usize) {
        for line in (0..n).step_by(CACHE_LINE) {
            // SAFETY: the caller's; a prefetch of any address is allowed.
            unsafe { L::prefetch(self.next.wrapping_add(line)) };
        }
        self.next = self.next.wrapping_add(n);
    }

    /// As `ask`, each line once.
    ///
    /// # Safety
    /// As for `Simd`.
    #[inline(always)]
    pub unsafe fn prefetch_lines<L: Simd>(&mut self, n: usize) {
        let end = self.next.wrapping_add(n);
        let mut line = self.next.map_addr(|at| at.next_multiple_of(CACHE_LINE));
        while line < end {
            // SAFETY: the caller's; a prefetch of any address is allowed.
            unsafe { L::prefetch(line) };
            line = line.wrapping_add(CACHE_LINE);
        }
        self.next = end;
    }
}

/// The quantised activations of one token.
#[derive(Clone, Copy)]
pub struct TokenActivations<'a> {
    /// (k)
    pub q: &'a [i8],
    pub scales: &'a [f32],
    pub sums: &'a [i32],
}

impl<'a> TokenActivations<'a> {
    #[inline(always)]
    pub fn of(acts: &Activations<'a>, t: usize) -> Self {
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

/// All rows, all tokens.
///
/// # Safety
/// As for `Simd`.
#[inline(always)]
pub unsafe fn run<F: BlockFormat, L: Simd>(w: WeightRows, acts: Activations, out: &mut OutTile) {
    assert!(w.k.is_multiple_of(F::BLOCK_LEN) && w.row_bytes == w.k / F::BLOCK_LEN * F::BLOCK_BYTES);
    assert!(
        acts.k == w.k && acts.q.len() == acts.n_tokens * w.k && w.bytes.len() == w.n_rows() * w.row_bytes
    );
    // SAFETY: the lengths were compared above.
    unsafe {
        match acts.n_tokens {
            1 => one_token::<F, L>(w, &TokenActivations::of(&acts, 0), out.token(0)),
            _ => gemm::gemm::<F, L>(w, &acts, out),
        }
    }
}

/// # Safety
/// As for `Simd`; the token has `w.k` activations.
#[inline(always)]
unsafe fn one_token<F: BlockFormat, L: Simd>(w: WeightRows, token: &TokenActivations, out: &mut [f32]) {
    for first in (0..w.n_rows()).step_by(L::ROWS) {
        let rows = pointers(&w, first);
        let after = (first + L::ROWS).min(w.n_rows());
        let prefetcher = RowPrefetcher::after(&w, first..after);
        // SAFETY: the caller's; `pointers` gives whole rows of `w`.
        let sums = unsafe { one::<F, L>(&rows, w.k / F::BLOCK_LEN, token, prefetcher, first == 0) };
        let out = &mut out[first..after];
        out.copy_from_slice(&sums[..out.len()]);
    }
}

/// Asks for `len` bytes from `offset` of each row.
///
/// # Safety
/// As for `Simd`.
#[inline(always)]
pub unsafe fn prefetch<L: Simd>(rows: &RowPointers, offset: usize, len: usize) {
    for line in (0..len).step_by(CACHE_LINE) {
        for row in &rows[..L::ROWS] {
            // SAFETY: the caller's; a prefetch reads nothing.
            unsafe { L::prefetch(row.wrapping_add(offset + line)) }
        }
    }
}

#[inline(always)]
unsafe fn one<F: BlockFormat, L: Simd>(
    rows: &RowPointers,
    n_blocks: usize,
    token: &TokenActivations,
    mut prefetcher: RowPrefetcher,
    cold: bool,
) -> [f32; MAX_ROWS] {
    let mut sums = [0.0; MAX_ROWS];
    // SAFETY: the caller's, whose rows have `n_blocks` blocks; `sums` has room for any register.
    unsafe {
        let every = (CACHE_LINE / F::BLOCK_BYTES).max(1);
        let mut acc = L::zero_f();
        for block in 0..n_blocks {
            if cold && block % every == 0 {
                prefetch::<L>(rows, block * F::BLOCK_BYTES + COLD_PREFETCH_BYTES, every * F::BLOCK_BYTES);
            }
            acc = F::multiply_block::<L>(acc, rows, block * F::BLOCK_BYTES, token, block, &mut prefetcher);
        }
        L::store_f(sums.as_mut_ptr(), acc);
    }
    sums
}

#[cfg(target_arch = "aarch64")]
pub(crate) use super::dispatch_arm::matmul_rows;
#[cfg(target_arch = "x86_64")]
pub(crate) use super::dispatch_x86::matmul_rows;
