//! The traversal that all quantized formats share. A panel is as many weight rows as a register has lanes.
//! One token: blocks are multiplied as stored and reduced across. Several tokens: a k-tile of blocks is
//! transposed once, so that each lane holds its row, and then multiplied with every token.
//! Guarantees: the sum of a row and a token is one chain of float additions from the first block to the last.

use std::ops::Range;

mod gemm;

use super::simd::{Simd, MAX_ROWS, RowPointers};
use super::packed_activations::PackedActivationsRef;
use super::{Activations, OutTile, WeightRows};

/// Most tokens for which a GEMV per token, with rows in the L1 cache, beats transposing the rows once for
/// all. On one core of a Sapphire Rapids, with Q4_K rows from memory, two tokens take 1.15 times as long as one either way.
/// Four take 1.98 times as long by GEMV, and 1.32 times transposed.
pub const GEMV_MAX_TOKENS: usize = 2;

const CACHE_LINE: usize = 64;
/// Distance between a read and its prefetch: what a core reads in some hundred nanoseconds.
const PREFETCH_DISTANCE_BYTES: usize = 16 * 1024;
/// Prefetch distance for the first rows of a call: about the latency of memory at the speed of one core.
const COLD_PREFETCH_BYTES: usize = 512;

/// Traversal of a block format by k-tiles: as many blocks as are worth transposing at once.
pub trait BlockFormat {
    /// Elements in a k-tile. The last tile of a row may have fewer blocks.
    const K_TILE_LEN: usize;
    /// Elements in a block.
    const BLOCK_LEN: usize;
    /// Bytes of a block.
    const BLOCK_BYTES: usize;
    /// Transposed weights of a k-tile.
    type Transposed<L: Simd>;
    /// Activations of eight tokens for a block.
    type PackedBlock;

    /// Borrows the packed activations if they are in this format; empty otherwise.
    fn packed_blocks<'a>(packed: PackedActivationsRef<'a>) -> &'a [Self::PackedBlock];

    /// Returns acc + the products of one token with the block at `offset` of each row; `block` is its index
    /// in the row.
    /// Prefetches as many bytes as it reads.
    ///
    /// # Safety
    /// Same requirements as `Simd`; a whole block lies at `offset` of each row, and `token` has the
    /// activations of `block`.
    unsafe fn multiply_block<L: Simd>(
        acc: L::F,
        rows: &RowPointers,
        offset: usize,
        token: &TokenActivations,
        block: usize,
        prefetcher: &mut RowPrefetcher,
    ) -> L::F;

    /// Returns zeroed memory for the transposed weights of a k-tile.
    fn zeroed_transposed<L: Simd>() -> Self::Transposed<L>;

    /// Transposes `n_blocks` blocks from `offset` of each row.
    ///
    /// # Safety
    /// Same requirements as `Simd`; the blocks are inside the rows.
    unsafe fn transpose_blocks<L: Simd>(
        transposed: &mut Self::Transposed<L>,
        rows: &RowPointers,
        offset: usize,
        n_blocks: usize,
    );

    /// Adds the products of `T` tokens with transposed blocks `first..first + n_blocks` of the row to `accs`.
    ///
    /// # Safety
    /// Same requirements as `Simd`; each token has the activations of these blocks.
    unsafe fn multiply_tokens<L: Simd, const T: usize>(
        transposed: &Self::Transposed<L>,
        tokens: &[TokenActivations; T],
        first: usize,
        n_blocks: usize,
        accs: &mut [[f32; MAX_ROWS]],
    );

    /// Like `multiply_tokens` for tokens `first..first + T` of a pack and `P` panels of rows. Each loaded
    /// activation is multiplied with all panels.
    ///
    /// # Safety
    /// Same requirements as `Simd`.
    unsafe fn multiply_packed<L: Simd, const T: usize, const P: usize>(
        transposed: [&Self::Transposed<L>; P],
        packed: &[Self::PackedBlock],
        first: usize,
        accs: [&mut [[f32; MAX_ROWS]]; P],
    );
}

/// Prefetches the rows after the current ones, in memory order. The hardware prefetcher does not recognize
/// that many short streams.
pub struct RowPrefetcher {
    next: *const u8,
}

impl RowPrefetcher {
    /// Starts prefetching `PREFETCH_DISTANCE_BYTES` past `rows`. Past the end of the matrix it continues with
    /// `w.next`. If that is unknown, it wraps to the current rows, which are already cached.
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

    /// Prefetches the next `n` bytes into the L2 cache. Requests some lines twice, which costs less than
    /// telling them apart.
    ///
    /// # Safety
    /// Same requirements as `Simd`.
    #[inline(always)]
    pub unsafe fn prefetch<L: Simd>(&mut self, n: usize) {
        for line in (0..n).step_by(CACHE_LINE) {
            // SAFETY: guaranteed by the caller; a prefetch of any address is allowed.
            unsafe { L::prefetch(self.next.wrapping_add(line)) };
        }
        self.next = self.next.wrapping_add(n);
    }

    /// Like `prefetch`, but requests each line once.
    ///
    /// # Safety
    /// Same requirements as `Simd`.
    #[inline(always)]
    pub unsafe fn prefetch_lines<L: Simd>(&mut self, n: usize) {
        let end = self.next.wrapping_add(n);
        let mut line = self.next.map_addr(|at| at.next_multiple_of(CACHE_LINE));
        while line < end {
            // SAFETY: guaranteed by the caller; a prefetch of any address is allowed.
            unsafe { L::prefetch(line) };
            line = line.wrapping_add(CACHE_LINE);
        }
        self.next = end;
    }
}

/// The quantized activations of one token.
#[derive(Clone, Copy)]
pub struct TokenActivations<'a> {
    /// (k)
    pub q: &'a [i8],
    /// (n_scales(k))
    pub scales: &'a [f32],
    /// (n_sums(k))
    pub sums: &'a [i32],
}

impl<'a> TokenActivations<'a> {
    /// Borrows the activations of token `t`.
    #[inline(always)]
    pub fn of(acts: &Activations<'a>, t: usize) -> Self {
        Self { q: acts.q_row(t), scales: acts.scale_row(t), sums: acts.sum_row(t) }
    }
}

/// Points to the first bytes of `N` rows from `first`. Past the last row it repeats that row.
#[inline(always)]
pub fn row_pointers<const N: usize>(w: &WeightRows, first: usize) -> [*const u8; N] {
    let last = w.n_rows() - 1;
    let mut rows = [std::ptr::null(); N];
    for (i, row) in rows.iter_mut().enumerate() {
        *row = w.row((first + i).min(last)).as_ptr();
    }
    rows
}

/// Multiplies all rows with all tokens.
///
/// # Safety
/// Same requirements as `Simd`.
#[inline(always)]
pub unsafe fn run<F: BlockFormat, L: Simd>(w: WeightRows, acts: Activations, out: &mut OutTile) {
    assert!(w.k.is_multiple_of(F::BLOCK_LEN) && w.row_bytes == w.k / F::BLOCK_LEN * F::BLOCK_BYTES);
    assert!(
        acts.k == w.k && acts.q.len() == acts.n_tokens * w.k && w.bytes.len() == w.n_rows() * w.row_bytes
    );
    // SAFETY: guaranteed by the caller; the lengths were compared above.
    unsafe {
        match acts.n_tokens {
            1 => gemv::<F, L>(w, &TokenActivations::of(&acts, 0), out.token(0)),
            _ => gemm::gemm::<F, L>(w, &acts, out),
        }
    }
}

/// # Safety
/// Same requirements as `Simd`; the token has `w.k` activations.
#[inline(always)]
unsafe fn gemv<F: BlockFormat, L: Simd>(w: WeightRows, token: &TokenActivations, out: &mut [f32]) {
    for first in (0..w.n_rows()).step_by(L::ROWS) {
        let rows = row_pointers(&w, first);
        let after = (first + L::ROWS).min(w.n_rows());
        let prefetcher = RowPrefetcher::after(&w, first..after);
        // SAFETY: guaranteed by the caller; `row_pointers` gives whole rows of `w`.
        let sums = unsafe { gemv_panel::<F, L>(&rows, w.k / F::BLOCK_LEN, token, prefetcher, first == 0) };
        let out = &mut out[first..after];
        out.copy_from_slice(&sums[..out.len()]);
    }
}

/// Prefetches `len` bytes from `offset` of each row.
///
/// # Safety
/// Same requirements as `Simd`.
#[inline(always)]
pub unsafe fn prefetch<L: Simd>(rows: &RowPointers, offset: usize, len: usize) {
    for line in (0..len).step_by(CACHE_LINE) {
        for row in &rows[..L::ROWS] {
            // SAFETY: guaranteed by the caller; a prefetch reads nothing.
            unsafe { L::prefetch(row.wrapping_add(offset + line)) }
        }
    }
}

/// Returns the products of one panel with one token. `cold`: no earlier call prefetched these rows.
#[inline(always)]
unsafe fn gemv_panel<F: BlockFormat, L: Simd>(
    rows: &RowPointers,
    n_blocks: usize,
    token: &TokenActivations,
    mut prefetcher: RowPrefetcher,
    cold: bool,
) -> [f32; MAX_ROWS] {
    let mut sums = [0.0; MAX_ROWS];
    // SAFETY: guaranteed by the caller, whose rows have `n_blocks` blocks; `sums` has room for any register.
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
