//! GEMM for several tokens: a k-tile of blocks is transposed once for all tokens, so that each lane holds its
//! row.
//! Panels of rows pass side by side through a slab of activations that stays in the L2 cache.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::{CACHE_LINE, BlockFormat, TokenActivations, row_pointers};
use crate::matmul::simd::{Simd, MAX_ROWS, RowPointers};
use crate::matmul::packed_activations::PACK_TOKENS;
use crate::matmul::{Activations, OutTile, WeightRows};

/// Tokens whose sums, for two panels, are held in registers. With a full pack, blocks that have scales would
/// need more than 32 registers.
const HALF_PACK: usize = PACK_TOKENS / 2;
/// Most tokens whose sums are kept between k-tiles; the executor's tiles are not larger.
const MAX_TILE_TOKENS: usize = 256;
/// Most panels whose sums are kept; an AVX-512 prompt task has no more.
const MAX_PANELS: usize = 8;
/// Activations (tokens × elements) that all panels meet before the next slab. About 384 KB as packed, so that
/// they stay in the L2 cache.
const SLAB_ELEMENTS: usize = 256 * 1024;

/// Panels whose sums are kept. Shorter registers need the same memory per panel, and come with smaller
/// caches.
const fn max_panels<L: Simd>() -> usize {
    MAX_PANELS * L::ROWS / MAX_ROWS
}

/// (tokens, rows): sums between k-tiles.
type PanelSums = [[f32; MAX_ROWS]];

/// Memory for the sums of some panels. Left uninitialized, as clearing it costs as much as several blocks.
#[repr(align(64))]
struct SumsBuffer([[MaybeUninit<[f32; MAX_ROWS]>; MAX_TILE_TOKENS]; MAX_PANELS]);

impl SumsBuffer {
    fn new() -> Self {
        Self([const { [const { MaybeUninit::uninit() }; MAX_TILE_TOKENS] }; MAX_PANELS])
    }

    /// Returns zeroed sums of `n_tokens` for each panel.
    fn zeroed(&mut self, n_tokens: usize) -> [&mut PanelSums; MAX_PANELS] {
        self.0.each_mut().map(|panel| {
            for sums in &mut panel[..n_tokens] {
                sums.write([0.0; MAX_ROWS]);
            }
            // SAFETY: initialized by the loop above.
            unsafe { panel[..n_tokens].assume_init_mut() }
        })
    }
}

/// Multiplies all rows with all tokens, a few panels at a time, slab after slab.
///
/// # Safety
/// Same requirements as `Simd`; each token has `w.k` activations.
#[inline(always)]
pub unsafe fn gemm<F: BlockFormat, L: Simd>(w: WeightRows, acts: &Activations, out: &mut OutTile) {
    let (mut transposed, mut buffer) = ([F::zeroed_transposed::<L>(), F::zeroed_transposed::<L>()], SumsBuffer::new());
    for tokens in (0..acts.n_tokens).step_by(MAX_TILE_TOKENS) {
        let tokens = tokens..(tokens + MAX_TILE_TOKENS).min(acts.n_tokens);
        let acts = acts.tokens(tokens.clone());
        let at_once = max_panels::<L>() * L::ROWS;
        for first in (0..w.n_rows()).step_by(at_once) {
            let rows = first..(first + at_once).min(w.n_rows());
            let mut sums = buffer.zeroed(tokens.len());
            // SAFETY: guaranteed by the caller.
            unsafe { multiply_panels::<F, L>(&w, &rows, &acts, &mut transposed, &mut sums) };
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

/// Adds the products of weight rows `rows` to the sums of their panels.
///
/// # Safety
/// Same requirements as `Simd`; each token has `w.k` activations.
#[inline(always)]
unsafe fn multiply_panels<F: BlockFormat, L: Simd>(
    w: &WeightRows,
    rows: &Range<usize>,
    acts: &Activations,
    transposed: &mut [F::Transposed<L>; 2],
    sums: &mut [&mut PanelSums; MAX_PANELS],
) {
    let n_blocks = w.k / F::BLOCK_LEN;
    let k_tile = F::K_TILE_LEN / F::BLOCK_LEN;
    let usual = (SLAB_ELEMENTS / acts.n_tokens / F::K_TILE_LEN).max(1) * k_tile;
    // A short last slab is merged into the others.
    let n_slabs = n_blocks.saturating_sub(usual / 4).div_ceil(usual).max(1);
    let slab = n_blocks.div_ceil(n_slabs).next_multiple_of(k_tile);
    for slab in (0..n_blocks).step_by(slab).map(|first| first..(first + slab).min(n_blocks)) {
        let mut first = rows.start;
        for sums in sums.chunks_mut(L::PANELS) {
            let task = PanelTask { w, rows, first, slab: &slab, acts };
            // SAFETY: guaranteed by the caller.
            unsafe {
                match sums {
                    [a, b] if first + L::ROWS < rows.end => {
                        let [x, y] = transposed;
                        task.run::<F, L, 2>([x, y], [a, b]);
                    }
                    [a, ..] if first < rows.end => task.run::<F, L, 1>([&mut transposed[0]], [a]),
                    _ => break,
                }
            }
            first += L::PANELS * L::ROWS;
        }
    }
}

/// Panels of weight rows from `first` on, within `rows`, and their blocks `slab`.
struct PanelTask<'a> {
    w: &'a WeightRows<'a>,
    rows: &'a Range<usize>,
    first: usize,
    slab: &'a Range<usize>,
    acts: &'a Activations<'a>,
}

impl PanelTask<'_> {
    /// Adds the products of `P` panels to their sums, k-tile by k-tile.
    ///
    /// # Safety
    /// Same requirements as `multiply_panels`.
    #[inline(always)]
    unsafe fn run<F: BlockFormat, L: Simd, const P: usize>(
        &self,
        transposed: [&mut F::Transposed<L>; P],
        mut sums: [&mut PanelSums; P],
    ) {
        let Self { w, rows, first, slab, acts } = *self;
        let (k_tile, is_first) = (F::K_TILE_LEN / F::BLOCK_LEN, first == rows.start);
        let panels: [RowPointers; P] = std::array::from_fn(|i| row_pointers(w, first + i * L::ROWS));
        // Blocks to prefetch during the last k-tile: the next rows, or the first rows' next slab.
        let next = match first + P * L::ROWS < rows.end {
            true => panels[0][0].wrapping_add(P * L::ROWS * w.row_bytes + slab.start * F::BLOCK_BYTES),
            false => w.bytes.as_ptr().wrapping_add(rows.start * w.row_bytes + slab.end * F::BLOCK_BYTES),
        };
        for first in slab.clone().step_by(k_tile) {
            let blocks = first..(first + k_tile).min(slab.end);
            // Prefetch the next k-tile while the tokens pass.
            let next = match blocks.end < slab.end {
                true => panels[0][0].wrapping_add(blocks.end * F::BLOCK_BYTES),
                false => next,
            };
            // SAFETY: guaranteed by the caller: the rows have these blocks.
            unsafe {
                for i in 0..P {
                    F::transpose_blocks::<L>(transposed[i], &panels[i], blocks.start * F::BLOCK_BYTES, blocks.len());
                }
                let next_rows = NextRows { at: next, row_bytes: w.row_bytes, n_rows: P * L::ROWS };
                let transposed = transposed.each_ref().map(|transposed| &**transposed);
                let pass = TokenPass { acts, n_blocks: w.k / F::BLOCK_LEN, blocks, is_first };
                pass.run::<F, L, P>(transposed, next_rows, &mut sums);
            }
        }
    }
}

/// Rows needed next, one k-tile each. Prefetched a few at a time while tokens pass, as a core has few
/// outstanding cache misses.
struct NextRows {
    /// In the first of the rows.
    at: *const u8,
    row_bytes: usize,
    n_rows: usize,
}

impl NextRows {
    /// Prefetches `len` bytes of each of the next rows, at most `n` rows.
    ///
    /// # Safety
    /// Same requirements as `Simd`.
    #[inline(always)]
    unsafe fn prefetch<L: Simd>(&mut self, n: usize, len: usize) {
        let n = n.min(self.n_rows);
        for row in 0..n {
            // SAFETY: guaranteed by the caller.
            unsafe { prefetch_span::<L>(self.at.wrapping_add(row * self.row_bytes), len) }
        }
        self.n_rows -= n;
        self.at = self.at.wrapping_add(n * self.row_bytes);
    }
}

/// Prefetches `len` bytes.
///
/// # Safety
/// Same requirements as `Simd`.
#[inline(always)]
unsafe fn prefetch_span<L: Simd>(start: *const u8, len: usize) {
    for line in (0..len).step_by(CACHE_LINE) {
        // SAFETY: guaranteed by the caller; a prefetch reads nothing.
        unsafe { L::prefetch(start.wrapping_add(line)) }
    }
}

/// One pass of all tokens over some transposed blocks.
struct TokenPass<'a> {
    acts: &'a Activations<'a>,
    /// Blocks in a row.
    n_blocks: usize,
    /// The transposed blocks.
    blocks: Range<usize>,
    /// No earlier rows used these activations, so they are not yet in the L2 cache.
    is_first: bool,
}

impl TokenPass<'_> {
    /// Adds the products of all tokens with the transposed blocks to the sums of each panel.
    ///
    /// # Safety
    /// Same requirements as `Simd`; each token has `n_blocks` blocks of activations.
    #[inline(always)]
    unsafe fn run<F: BlockFormat, L: Simd, const P: usize>(
        &self,
        transposed: [&F::Transposed<L>; P],
        mut next_rows: NextRows,
        sums: &mut [&mut PanelSums; P],
    ) {
        let Self { acts, n_blocks, blocks, is_first } = self;
        let (packed, n_packs) = (F::packed_blocks(acts.packed), acts.n_tokens / PACK_TOKENS);
        let n_halves = (n_packs * PACK_TOKENS / HALF_PACK).max(1);
        let (some, len) = (next_rows.n_rows.div_ceil(n_halves), F::K_TILE_LEN / F::BLOCK_LEN * F::BLOCK_BYTES);
        let mut t = 0;
        // SAFETY: guaranteed by the caller: each token has `k` activations.
        unsafe {
            for (i, packed) in packed.chunks_exact(*n_blocks).take(n_packs).enumerate() {
                // The next pack is too far away for the hardware prefetcher. After the last pack comes the
                // first one's next k-tile.
                let next: *const u8 = match i + 1 < n_packs {
                    true => packed.as_ptr().wrapping_add(n_blocks + blocks.start).cast(),
                    false => packed.as_ptr().wrapping_add(blocks.end).cast(),
                };
                let packed = &packed[blocks.clone()];
                let half = size_of_val(packed) / 2;
                for (i, first) in [0, HALF_PACK].into_iter().enumerate() {
                    if *is_first {
                        prefetch_span::<L>(next.wrapping_add(i * half), half);
                    }
                    next_rows.prefetch::<L>(some, len);
                    let of = t + first..t + first + HALF_PACK;
                    let sums = sums.each_mut().map(|sums| &mut sums[of.clone()]);
                    F::multiply_packed::<L, HALF_PACK, P>(transposed, packed, first, sums);
                }
                t += PACK_TOKENS;
            }
            next_rows.prefetch::<L>(next_rows.n_rows, len);
            for (transposed, sums) in transposed.into_iter().zip(sums) {
                multiply_remaining_tokens::<F, L>(transposed, acts, t, blocks, sums);
            }
        }
    }
}

/// Like `TokenPass::run` for one panel and the tokens from `t` on, which are in no pack.
///
/// # Safety
/// Same requirements as `TokenPass::run`.
#[inline(always)]
unsafe fn multiply_remaining_tokens<F: BlockFormat, L: Simd>(
    transposed: &F::Transposed<L>,
    acts: &Activations,
    mut t: usize,
    blocks: &Range<usize>,
    sums: &mut PanelSums,
) {
    let (first, n) = (blocks.start, blocks.len());
    // SAFETY: guaranteed by the caller.
    unsafe {
        while acts.n_tokens - t >= 4 {
            multiply_token_group::<F, L, 4>(transposed, acts, t, first, n, sums);
            t += 4;
        }
        match acts.n_tokens - t {
            0 => {}
            1 => multiply_token_group::<F, L, 1>(transposed, acts, t, first, n, sums),
            2 => multiply_token_group::<F, L, 2>(transposed, acts, t, first, n, sums),
            // `smmla` multiplies pairs.
            _ if L::HAS_SMMLA => {
                multiply_token_group::<F, L, 2>(transposed, acts, t, first, n, sums);
                multiply_token_group::<F, L, 1>(transposed, acts, t + 2, first, n, sums);
            }
            _ => multiply_token_group::<F, L, 3>(transposed, acts, t, first, n, sums),
        }
    }
}

/// Adds the products of `T` tokens from `t` on.
///
/// # Safety
/// Same requirements as `Simd`; the tokens have the activations of these blocks.
#[inline(always)]
unsafe fn multiply_token_group<F: BlockFormat, L: Simd, const T: usize>(
    transposed: &F::Transposed<L>,
    acts: &Activations,
    t: usize,
    first: usize,
    n: usize,
    sums: &mut PanelSums,
) {
    let mut tokens = [TokenActivations::of(acts, t); T];
    for (i, token) in tokens.iter_mut().enumerate() {
        *token = TokenActivations::of(acts, t + i);
    }
    // SAFETY: guaranteed by the caller.
    unsafe { F::multiply_tokens::<L, T>(transposed, &tokens, first, n, &mut sums[t..t + T]) }
}

