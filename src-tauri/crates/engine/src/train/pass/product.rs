//! Matrix products in f32 on all threads. The other operand is decoded and packed a panel at a time, so that no whole
//! matrix is ever decoded. Every element is summed in an order that depends on k alone, whatever the number of threads.

use std::ops::Range;

use kernels::ops::Kernels;
use kernels::ops::integer_panel::PanelOutput;
use kernels::ops::panel::PanelShape;
use kernels::{KernelError, Tensor};

use super::ProductPrecision;
use super::gpu_product::GpuProducts;
use super::integer_product::IntegerProducts;
use super::matrix::{Direction, MAX_BLOCK, Matrix, STRIP};
use super::workers::Workers;

/// Columns packed by one task.
const GROUP: usize = MAX_BLOCK;
/// Rows of a packed tile; a strip of them fits into an L1 cache.
const K_TILE: usize = MAX_BLOCK;
/// Floats of a packed tile of a group.
const GROUP_LEN: usize = GROUP * K_TILE;
/// Floats that are packed at a time, if as many columns as one task packs are not more: 2 MiB.
const PANEL_LEN: usize = 8 * GROUP_LEN;
/// Most tiles of k that are packed at a time.
const PANEL_TILES: usize = 8;
/// Largest size of `Products::packed`.
pub(super) const MAX_PACKED_BYTES: u64 = (PANEL_LEN * size_of::<f32>()) as u64;
/// Fewest rows of the result for one task.
const MIN_TASK_ROWS: usize = 16;
/// Most rows of the result for one task: their part of the left operand fits into an L2 cache.
const MAX_TASK_ROWS: usize = 128;

/// Rows of one partial sum of an outer product.
const OUTER_ROWS: usize = 128;

/// Threads, kernels and scratch memory of products.
pub(super) struct Products {
    pub workers: Workers,
    pub kernels: Kernels,
    packed: Vec<f32>,
    integer: Option<IntegerProducts>,
    pub gpu: GpuProducts,
}

impl Products {
    pub fn new(workers: Workers, kernels: Kernels, precision: ProductPrecision) -> Self {
        let integer = match precision {
            ProductPrecision::Float32 => None,
            ProductPrecision::Integer16 => IntegerProducts::new(kernels),
        };
        Self { workers, kernels, packed: Vec::new(), integer, gpu: GpuProducts::default() }
    }

    /// c (rows, n) = or += a (rows, k) · Wᵀ or W: on the GPU if there is one, else in integers if W is quantized and the
    /// precision allows it.
    pub fn multiply_frozen(
        &mut self,
        a: &[f32],
        w: &Tensor,
        direction: Direction,
        output: PanelOutput,
        c: &mut [f32],
    ) -> Result<(), KernelError> {
        if self.gpu.multiply(a, w, direction, output, c) {
            return Ok(());
        }
        match &mut self.integer {
            Some(integer) if w.dtype().block_len() > 1 => {
                integer.multiply(&mut self.workers, a, Matrix::Stored(w), direction, output, c)
            }
            _ => self.multiply(a, Matrix::Stored(w), direction, output, c),
        }
    }

    /// c (rows, n) = or += a (rows, k) · Wᵀ or W.
    pub fn multiply(
        &mut self,
        a: &[f32],
        w: Matrix<'_>,
        direction: Direction,
        output: PanelOutput,
        c: &mut [f32],
    ) -> Result<(), KernelError> {
        let (k, n) = w.k_and_n(direction);
        for first in (0..k).step_by(PANEL_TILES * K_TILE) {
            let tiles = first..(first + PANEL_TILES * K_TILE).min(k);
            let output = if first == 0 { output } else { PanelOutput::Add };
            let n_columns = PANEL_LEN / GROUP_LEN / tiles.len().div_ceil(K_TILE) * GROUP;
            for first in (0..n).step_by(n_columns) {
                let columns = first..(first + n_columns).min(n);
                self.pack(w, direction, &tiles, &columns)?;
                self.multiply_panel((a, k), &tiles, &columns, output, (c, n))?;
            }
        }
        Ok(())
    }

    /// Packs tile after tile, in each group after group.
    fn pack(
        &mut self,
        w: Matrix<'_>,
        direction: Direction,
        k: &Range<usize>,
        columns: &Range<usize>,
    ) -> Result<(), KernelError> {
        let n_groups = columns.len().div_ceil(GROUP);
        let n_tasks = k.len().div_ceil(K_TILE) * n_groups;
        // What is longer than needed is neither written nor read.
        self.packed.resize(self.packed.len().max(n_tasks * GROUP_LEN), 0.0);
        self.workers.chunks(&mut self.packed[..n_tasks * GROUP_LEN], GROUP_LEN, &|task, out| {
            let first = k.start + task / n_groups * K_TILE;
            let tile = first..(first + K_TILE).min(k.end);
            let first = columns.start + task % n_groups * GROUP;
            let columns = first..(first + GROUP).min(columns.end);
            let out = &mut out[..columns.len().next_multiple_of(STRIP) * tile.len()];
            match direction {
                Direction::Forward => w.pack_rows(columns, &tile, out),
                Direction::Backward => w.pack_columns(&tile, columns, out),
            }
        })
    }

    fn multiply_panel(
        &mut self,
        (a, k): (&[f32], usize),
        tiles: &Range<usize>,
        columns: &Range<usize>,
        output: PanelOutput,
        (c, n): (&mut [f32], usize),
    ) -> Result<(), KernelError> {
        let n_rows = c.len() / n;
        let task_rows = n_rows.div_ceil(2 * self.workers.n_threads()).clamp(MIN_TASK_ROWS, MAX_TASK_ROWS);
        let (packed, panel, n_groups) = (&self.packed, self.kernels.panel, columns.len().div_ceil(GROUP));
        self.workers.chunks(c, task_rows * n, &|task, c| {
            let a = &a[task * task_rows * k..];
            if output == PanelOutput::Overwrite {
                c.chunks_exact_mut(n).for_each(|c| c[columns.clone()].fill(0.0));
            }
            for first in (0..columns.len()).step_by(STRIP) {
                for (tile, start) in tiles.clone().step_by(K_TILE).enumerate() {
                    let len = K_TILE.min(tiles.end - start);
                    let group = (tile * n_groups + first / GROUP) * GROUP_LEN;
                    let shape = PanelShape {
                        n_a: c.len() / n,
                        k: len,
                        n: STRIP.min(columns.len() - first),
                        a_stride: k,
                        b_stride: STRIP,
                        c_stride: n,
                    };
                    let b = &packed[group + first % GROUP * len..];
                    panel(shape, &a[start..], b, &mut c[columns.start + first..]);
                }
            }
        })
    }

    /// gradient [n_y, n_x] += dyᵀ · x for x (rows, n_x) and dy (rows, n_y). One side should be short.
    pub fn add_outer(
        &mut self,
        x: &[f32],
        dy: &[f32],
        (n_x, n_y): (usize, usize),
        gradient: &mut [f32],
    ) -> Result<(), KernelError> {
        let is_short_y = n_y <= n_x;
        let ((short, n_short), (long, n_long)) =
            if is_short_y { ((dy, n_y), (x, n_x)) } else { ((x, n_x), (dy, n_y)) };
        let panel = self.kernels.panel;
        // Partial sums over as many rows each, whatever the number of threads.
        let partial_sums = self.workers.map(short.len().div_ceil(OUTER_ROWS * n_short), &|part| {
            let short = short.chunks(OUTER_ROWS * n_short).nth(part).unwrap_or(&[]);
            let k = short.len() / n_short;
            let shape =
                PanelShape { n_a: n_short, k, n: n_long, a_stride: k, b_stride: n_long, c_stride: n_long };
            let mut sum = vec![0.0; n_short * n_long];
            panel(shape, &transposed(short, n_short), &long[part * OUTER_ROWS * n_long..], &mut sum);
            sum
        })?;
        let mut sums = partial_sums.into_iter();
        let mut total = sums.next().unwrap_or_default();
        for sum in sums {
            total.iter_mut().zip(&sum).for_each(|(total, sum)| *total += sum);
        }
        if !is_short_y {
            total = transposed(&total, n_y);
        }
        gradient.iter_mut().zip(&total).for_each(|(gradient, sum)| *gradient += sum);
        Ok(())
    }
}

/// (rows, n) → (n, rows)
fn transposed(x: &[f32], n: usize) -> Vec<f32> {
    let n_rows = x.len() / n;
    let mut out = vec![0.0; x.len()];
    for (row, x) in x.chunks_exact(n).enumerate() {
        for (i, x) in x.iter().enumerate() {
            out[i * n_rows + row] = *x;
        }
    }
    out
}
