//! The left side of matrix products: rows of activations, quantized once for all weights that are multiplied
//! with them.
//! `MatMulWeight::multiply` multiplies them with weight rows by the fast or generic path of the weights'
//! format.

use std::ops::Range;

use super::arena::AlignedVec;
use super::disjoint_slices::{DisjointSlices, OutTile};
use super::isa::IsaLevel;
use super::thread_pool::ThreadPool;
use crate::error::KernelError;
use crate::matmul::packed_activations::{
    PACK_Q8_0, PACK_Q8K, PACK_TOKENS, PackedActivations, PackedActivationsRef,
};
use crate::matmul::{ActivationFormat, Activations, MatMulRow, WeightRows, generic};
use crate::ops::Kernels;
use crate::tensor::Tensor;

/// Floats up to which waking the pool costs more than quantizing or copying them: about 2 µs.
const MIN_PARALLEL_FLOATS: usize = 32 * 1024;

/// Rows of activations in each format.
pub struct ActivationBuffers {
    floats: AlignedVec<f32>,
    q8_0: QuantizedBuffer,
    q8_k: QuantizedBuffer,
}

/// Memory needed in each format.
#[derive(Clone, Copy, Default)]
pub struct BufferSizes {
    floats: usize,
    q8_0: RowSizes,
    q8_k: RowSizes,
}

/// Elements in all, and in the widest row.
#[derive(Clone, Copy, Default)]
struct RowSizes {
    n: usize,
    k: usize,
}

impl RowSizes {
    fn add(&mut self, n_rows: usize, k: usize) {
        self.n = self.n.max(n_rows * k);
        self.k = self.k.max(k);
    }

    /// Returns the blocks of full packs. Groups of rows that share packs need up to one pack more.
    fn pack_blocks(self, block_len: usize) -> usize {
        (self.n / PACK_TOKENS + self.k) / block_len
    }
}

impl BufferSizes {
    /// Adds rows in the format that `fast` takes: floats if there is no fast path.
    pub fn add(&mut self, fast: Option<&MatMulRow>, n_rows: usize, k: usize) {
        match fast.map_or(ActivationFormat::F32, |row| row.act) {
            ActivationFormat::F32 => self.floats = self.floats.max(n_rows * k),
            ActivationFormat::Q8_0 => self.q8_0.add(n_rows, k),
            ActivationFormat::Q8_K => self.q8_k.add(n_rows, k),
        }
    }
}

/// Fills row i with quants, scales and sums.
type FillRow<'a> = &'a (dyn Fn(usize, &mut [i8], &mut [f32], &mut [i32]) + Sync);
/// Returns the first row of a pack, if it has any.
type FirstRow<'a> = &'a (dyn Fn(usize) -> Option<usize> + Sync);

/// Activations in one quantized format.
struct QuantizedBuffer {
    format: ActivationFormat,
    q: AlignedVec<i8>,
    scales: AlignedVec<f32>,
    sums: AlignedVec<i32>,
    packed: PackedActivations,
}

impl ActivationBuffers {
    /// Allocates the buffers. Errors: out of memory.
    pub fn new(sizes: BufferSizes) -> Result<Self, KernelError> {
        Ok(Self {
            floats: AlignedVec::zeroed(sizes.floats, "activations of experts")?,
            q8_0: QuantizedBuffer::new(ActivationFormat::Q8_0, sizes.q8_0)?,
            q8_k: QuantizedBuffer::new(ActivationFormat::Q8_K, sizes.q8_k)?,
        })
    }

    /// Quantizes x (n_rows, k) for `fast`, unless that takes floats. Row i of the result is row `order[i]` of
    /// x.
    pub fn fill(
        &mut self,
        pool: &mut ThreadPool,
        fast: &MatMulRow,
        x: &[f32],
        k: usize,
        order: Option<&[u32]>,
    ) -> Result<(), String> {
        let Some(quantised) = self.of_mut(fast.act) else { return Ok(()) };
        let n_rows = order.map_or(x.len() / k, <[u32]>::len);
        quantised.each_row(pool, n_rows, k, &|i, q, scales, sums| {
            let row = order.map_or(i, |order| order[i] as usize);
            (fast.quantize)(&x[row * k..(row + 1) * k], q, scales, sums);
        })
    }

    /// Copies row `order(i)` of x (rows, k) to row i, as floats.
    pub fn gather_floats(
        &mut self,
        pool: &mut ThreadPool,
        x: &[f32],
        k: usize,
        order: &(dyn Fn(usize) -> usize + Sync),
        n_rows: usize,
    ) -> Result<(), String> {
        let floats = DisjointSlices::new(&mut self.floats);
        let row = |i: usize| {
            // SAFETY: each row is visited once, and rows do not overlap.
            let out = unsafe { floats.slice_mut(i * k..(i + 1) * k) };
            out.copy_from_slice(&x[order(i) * k..(order(i) + 1) * k]);
        };
        for_each_row(pool, n_rows, k, &row)
    }

    /// Copies row `order(i)` of `from` to row i, in the quantized format that `fast` takes.
    pub fn gather(
        &mut self,
        pool: &mut ThreadPool,
        fast: &MatMulRow,
        from: &Activations,
        order: &(dyn Fn(usize) -> usize + Sync),
        n_rows: usize,
    ) -> Result<(), String> {
        let Some(quantised) = self.of_mut(fast.act) else { return Ok(()) };
        quantised.each_row(pool, n_rows, from.k, &|i, q, scales, sums| {
            let row = order(i);
            q.copy_from_slice(from.q_row(row));
            scales.copy_from_slice(from.scale_row(row));
            sums.copy_from_slice(from.sum_row(row));
        })
    }

    /// Packs the last `n_rows` rows filled in, in the format that `fast` takes: pack i begins with row
    /// `first(i)`.
    pub fn interleave(
        &mut self,
        pool: &mut ThreadPool,
        fast: &MatMulRow,
        (n_rows, k): (usize, usize),
        n_packs: usize,
        first: FirstRow,
    ) -> Result<(), String> {
        let Some(quantised) = self.of_mut(fast.act) else { return Ok(()) };
        quantised.interleave(pool, fast.level, (n_rows, k), n_packs, first)
    }

    /// Returns the last rows filled in as floats (n_rows, k); empty if the buffer is too small for them.
    pub fn floats(&self, n_rows: usize, k: usize) -> &[f32] {
        self.floats.get(..n_rows * k).unwrap_or(&[])
    }

    /// Returns the last rows filled in, quantized (n_rows, k); no rows in formats that are not in use.
    pub fn acts(&self, n_rows: usize, k: usize) -> QuantizedActivations<'_> {
        QuantizedActivations { q8_0: self.q8_0.acts(n_rows, k), q8_k: self.q8_k.acts(n_rows, k) }
    }

    fn of_mut(&mut self, format: ActivationFormat) -> Option<&mut QuantizedBuffer> {
        match format {
            ActivationFormat::F32 => None,
            ActivationFormat::Q8_0 => Some(&mut self.q8_0),
            ActivationFormat::Q8_K => Some(&mut self.q8_k),
        }
    }
}

impl QuantizedBuffer {
    fn new(format: ActivationFormat, sizes: RowSizes) -> Result<Self, KernelError> {
        let (n_floats, what) = (sizes.n, "quantised activations");
        Ok(Self {
            format,
            q: AlignedVec::zeroed(n_floats, what)?,
            scales: AlignedVec::zeroed(format.n_scales(n_floats), what)?,
            sums: AlignedVec::zeroed(format.n_sums(n_floats), what)?,
            packed: PackedActivations::zeroed(format, sizes.pack_blocks(format.block_len()))?,
        })
    }

    /// Calls `f(row, q, scales, sums)` for each row.
    fn each_row(&mut self, pool: &mut ThreadPool, n_rows: usize, k: usize, f: FillRow) -> Result<(), String> {
        let (n_scales, n_sums) = (self.format.n_scales(k), self.format.n_sums(k));
        let (q, scales, sums) = (
            DisjointSlices::new(&mut self.q),
            DisjointSlices::new(&mut self.scales),
            DisjointSlices::new(&mut self.sums),
        );
        let row = |t: usize| {
            // SAFETY: each row is visited once, and rows do not overlap.
            let (q, scales, sums) = unsafe {
                (
                    q.slice_mut(t * k..(t + 1) * k),
                    scales.slice_mut(t * n_scales..(t + 1) * n_scales),
                    sums.slice_mut(t * n_sums..(t + 1) * n_sums),
                )
            };
            f(t, q, scales, sums);
        };
        for_each_row(pool, n_rows, k, &row)
    }

    /// Packs the eight rows from `first(i)` into pack i.
    fn interleave(
        &mut self,
        pool: &mut ThreadPool,
        level: IsaLevel,
        (n_rows, k): (usize, usize),
        n_packs: usize,
        first: FirstRow,
    ) -> Result<(), String> {
        let width = k / self.format.block_len();
        let acts = Activations {
            n_tokens: n_rows,
            k,
            x: &[],
            q: &self.q[..n_rows * k],
            scales: &self.scales[..n_rows * self.format.n_scales(k)],
            sums: &self.sums[..n_rows * self.format.n_sums(k)],
            packed: PackedActivationsRef::None,
        };
        let part = |i: usize| i * width..(i + 1) * width;
        match &mut self.packed {
            PackedActivations::None => Ok(()),
            PackedActivations::Q8_0(all) => {
                let (all, fill) = (DisjointSlices::new(all), PACK_Q8_0.at(level));
                for_each_row(pool, n_packs, PACK_TOKENS * k, &|i| {
                    let Some(first) = first(i) else { return };
                    // SAFETY: each pack is visited once, and packs do not overlap.
                    fill(&acts, first, unsafe { all.slice_mut(part(i)) });
                })
            }
            PackedActivations::Q8K(all) => {
                let (all, fill) = (DisjointSlices::new(all), PACK_Q8K.at(level));
                for_each_row(pool, n_packs, PACK_TOKENS * k, &|i| {
                    let Some(first) = first(i) else { return };
                    // SAFETY: as above.
                    fill(&acts, first, unsafe { all.slice_mut(part(i)) });
                })
            }
        }
    }

    /// Borrows the packs of `n_rows` rows; none for fewer than a pack.
    fn packed_blocks(&self, n_rows: usize, k: usize) -> PackedActivationsRef<'_> {
        if n_rows < PACK_TOKENS {
            return PackedActivationsRef::None;
        }
        self.packed.blocks(n_rows.div_ceil(PACK_TOKENS) * (k / self.format.block_len()))
    }

    /// Borrows the activations; empty if the buffer is too small, as another format was filled then.
    fn acts(&self, n_rows: usize, k: usize) -> Activations<'_> {
        let n_tokens = if n_rows * k <= self.q.len() { n_rows } else { 0 };
        Activations {
            n_tokens,
            k,
            x: &[],
            q: &self.q[..n_tokens * k],
            scales: &self.scales[..n_tokens * self.format.n_scales(k)],
            sums: &self.sums[..n_tokens * self.format.n_sums(k)],
            packed: self.packed_blocks(n_tokens, k),
        }
    }
}

/// Calls `f` for each row.
fn for_each_row(
    pool: &mut ThreadPool,
    n_rows: usize,
    k: usize,
    f: &(dyn Fn(usize) + Sync),
) -> Result<(), String> {
    if n_rows * k <= MIN_PARALLEL_FLOATS {
        return pool.run(1, &|_, _| (0..n_rows).for_each(f));
    }
    pool.run(n_rows, &|row, _| f(row))
}

/// Rows of activations in all formats that were filled.
#[derive(Clone, Copy)]
pub struct QuantizedActivations<'a> {
    q8_0: Activations<'a>,
    q8_k: Activations<'a>,
}

impl<'a> QuantizedActivations<'a> {
    /// Returns all rows in the quantized format that `fast` takes.
    pub fn of(&self, fast: &MatMulRow) -> Activations<'a> {
        match fast.act {
            ActivationFormat::Q8_0 => self.q8_0,
            ActivationFormat::F32 | ActivationFormat::Q8_K => self.q8_k,
        }
    }
}

/// The right side of a product.
#[derive(Clone, Copy)]
pub struct MatMulWeight<'a> {
    /// [n_out, k].
    pub weight: &'a Tensor,
    /// Fast path; `None`: generic.
    pub fast: Option<&'static MatMulRow>,
}

impl<'a> MatMulWeight<'a> {
    /// Returns the bytes of weight rows `rows`.
    pub fn rows(&self, rows: &Range<usize>) -> &'a [u8] {
        let row_bytes = self.weight.row_bytes();
        &self.weight.bytes()[rows.start * row_bytes..rows.end * row_bytes]
    }

    /// Multiplies weight rows `rows` with activation rows `tokens`.
    /// `x`: those tokens as floats (tokens, k). `quants`: all rows. `next`: what this thread will probably
    /// read next. `scratch`: memory for a decoded weight row if there is no fast path.
    #[allow(clippy::too_many_arguments)] // both operands, their ranges, what follows, and the output
    pub fn multiply(
        &self,
        kernels: &Kernels,
        rows: &Range<usize>,
        next: &[u8],
        x: &[f32],
        quants: &QuantizedActivations,
        tokens: &Range<usize>,
        scratch: &mut [f32],
        out: &mut OutTile,
    ) {
        let k = self.weight.n_cols();
        let w = WeightRows { bytes: self.rows(rows), row_bytes: self.weight.row_bytes(), k, next };
        match self.fast {
            Some(row) => {
                let acts = match row.act {
                    ActivationFormat::F32 => Activations::floats(x, k),
                    ActivationFormat::Q8_0 | ActivationFormat::Q8_K => quants.of(row).tokens(tokens.clone()),
                };
                (row.kernel)(w, acts, out);
            }
            None => generic::rows(kernels.dot, self.weight.codec(), w, x, &mut scratch[..k], out),
        }
    }
}

/// Tokens that a task multiplies with its rows before it takes the next ones. A tile of activations of usual
/// width stays in the L2 cache beside the rows.
pub const TOKEN_TILE: usize = 256;
/// Weight rows in a task are a multiple of this, and every kernel's register tile divides it.
const ROW_STEP: usize = 16;
/// Most bytes of weights in one task of a decode step. Kernels prefetch the next rows of a task, so that only
/// its first rows wait for memory.
const TASK_BYTES: usize = 512 * 1024;
/// Weight rows in one task of a prompt: as many as have their sums side by side, so that activations seldom
/// come from beyond the L2 cache.
pub const PROMPT_ROWS: usize = 128;
/// Most tokens for which a step is bound by memory and not by arithmetic.
pub const MAX_MEMORY_BOUND_TOKENS: usize = 4;

/// Returns the weight rows of one task out of `n_rows`, so that every thread gets several tasks.
pub fn rows_per_task(n_tokens: usize, n_rows: usize, row_bytes: usize, n_threads: usize) -> usize {
    let several = n_rows / (4 * n_threads);
    if n_tokens <= MAX_MEMORY_BOUND_TOKENS {
        return ((TASK_BYTES / row_bytes).min(several) / ROW_STEP * ROW_STEP).max(ROW_STEP);
    }
    if several < PROMPT_ROWS / 2 {
        return (several / ROW_STEP * ROW_STEP).max(ROW_STEP);
    }
    // Tasks are long: choose the length that gives the busiest thread the least work.
    let lengths =
        [PROMPT_ROWS, PROMPT_ROWS * 3 / 4, PROMPT_ROWS / 2].into_iter().filter(|step| *step <= several);
    let busiest = |step: usize| n_rows.div_ceil(step).div_ceil(n_threads) * step;
    lengths.min_by_key(|step| busiest(*step)).unwrap_or(PROMPT_ROWS / 2)
}

#[cfg(test)]
mod tests {
    use super::rows_per_task;

    #[test]
    fn prompt_tasks_are_divided_evenly() {
        for (n_rows, n_threads, expected) in [
            (2048, 2, 128),
            // nine tasks of 128 would be five for one thread and four for the other
            (1152, 2, 96),
            (1024, 2, 128),
            (2048, 16, 32),
            (16_384, 16, 128),
            (64, 16, 16),
        ] {
            assert_eq!(rows_per_task(512, n_rows, 1152, n_threads), expected, "{n_rows} rows");
        }
    }
}
