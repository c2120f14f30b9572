//! Matrix products in f32 on all threads. The other operand is decoded and packed a panel at a time, so that no whole
//! matrix is ever decoded. Every element is summed in rising order of k, whatever the number of rows and threads.

use std::ops::Range;

use kernels::KernelError;
use kernels::ops::Kernels;
use kernels::ops::panel::PanelShape;

use super::matrix::{MAX_BLOCK, Matrix, STRIP};
use super::workers::Workers;

/// Columns packed by one task.
const GROUP: usize = MAX_BLOCK;
/// Columns of a packed panel: with `K_TILE` rows 2 MiB.
const PANEL_COLUMNS: usize = 8 * GROUP;
/// Rows of a packed panel; a strip of them fits into an L1 cache.
const K_TILE: usize = MAX_BLOCK;
/// Largest size of `Products::packed`.
pub(super) const MAX_PACKED_BYTES: u64 = (PANEL_COLUMNS * K_TILE * size_of::<f32>()) as u64;
/// Fewest rows of the result for one task.
const MIN_TASK_ROWS: usize = 16;
/// Most rows of the result for one task: their part of the left operand fits into an L2 cache.
const MAX_TASK_ROWS: usize = 128;

/// Which way a matrix W [out, in] is multiplied.
#[derive(Clone, Copy)]
pub(super) enum Direction {
    /// x · Wᵀ
    Forward,
    /// dy · W
    Backward,
}

/// Threads, kernels and scratch memory of products.
pub(super) struct Products {
    pub workers: Workers,
    pub kernels: Kernels,
    packed: Vec<f32>,
}

impl Products {
    pub fn new(workers: Workers, kernels: Kernels) -> Self {
        Self { workers, kernels, packed: Vec::new() }
    }

    /// c (rows, n) += a (rows, k) · Wᵀ or W.
    pub fn add(
        &mut self,
        a: &[f32],
        w: Matrix<'_>,
        direction: Direction,
        c: &mut [f32],
    ) -> Result<(), KernelError> {
        let (k, n) = match direction {
            Direction::Forward => (w.n_cols(), w.n_rows()),
            Direction::Backward => (w.n_rows(), w.n_cols()),
        };
        for first in (0..n).step_by(PANEL_COLUMNS) {
            let columns = first..(first + PANEL_COLUMNS).min(n);
            for first in (0..k).step_by(K_TILE) {
                let tile = first..(first + K_TILE).min(k);
                self.pack(w, direction, &tile, &columns)?;
                self.add_panel((a, k), &tile, &columns, (c, n))?;
            }
        }
        Ok(())
    }

    fn pack(
        &mut self,
        w: Matrix<'_>,
        direction: Direction,
        tile: &Range<usize>,
        columns: &Range<usize>,
    ) -> Result<(), KernelError> {
        let n_strips = columns.len().div_ceil(STRIP);
        self.packed.resize(n_strips * STRIP * tile.len(), 0.0);
        let len = GROUP * tile.len();
        self.workers.chunks(&mut self.packed, len, &|group, out| {
            let first = columns.start + group * GROUP;
            let columns = first..(first + GROUP).min(columns.end);
            match direction {
                Direction::Forward => w.pack_rows(columns, tile, out),
                Direction::Backward => w.pack_columns(tile, columns, out),
            }
        })
    }

    fn add_panel(
        &mut self,
        (a, k): (&[f32], usize),
        tile: &Range<usize>,
        columns: &Range<usize>,
        (c, n): (&mut [f32], usize),
    ) -> Result<(), KernelError> {
        let n_rows = c.len() / n;
        let task_rows = n_rows.div_ceil(2 * self.workers.n_threads()).clamp(MIN_TASK_ROWS, MAX_TASK_ROWS);
        let (packed, panel) = (&self.packed, self.kernels.panel);
        self.workers.chunks(c, task_rows * n, &|task, c| {
            let a = &a[task * task_rows * k + tile.start..];
            for (strip, packed) in packed.chunks_exact(STRIP * tile.len()).enumerate() {
                let first = columns.start + strip * STRIP;
                let shape = PanelShape {
                    n_a: c.len() / n,
                    k: tile.len(),
                    n: (columns.end - first).min(STRIP),
                    a_stride: k,
                    b_stride: STRIP,
                    c_stride: n,
                };
                panel(shape, a, packed, &mut c[first..]);
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
        if n_y <= n_x {
            let left = transposed(dy, n_y);
            return self.add(&left, Matrix::Dense { values: x, n_cols: n_x }, Direction::Backward, gradient);
        }
        let left = transposed(x, n_x);
        let mut turned = vec![0.0; n_x * n_y];
        self.add(&left, Matrix::Dense { values: dy, n_cols: n_y }, Direction::Backward, &mut turned)?;
        for (j, row) in turned.chunks_exact(n_y).enumerate() {
            for (i, x) in row.iter().enumerate() {
                gradient[i * n_x + j] += x;
            }
        }
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
