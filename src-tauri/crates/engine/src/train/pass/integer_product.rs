//! Matrix products of integers with 16 bits on all threads, for quantized matrices. Both operands are rounded to integers
//! that share a scale per tile of k. The error is about that of bfloat16, at several times its speed.
//! Guarantees: every element depends on its own row and column alone, whatever the number of rows and threads.

use kernels::KernelError;
use kernels::ops::Kernels;
use kernels::ops::integer_panel::{
    self, IntegerPanelShape, K_TILE, MultiplyIntegerPanel, PAIR, PanelOutput, QUANTIZE_A, STRIP,
    ScaledIntegers,
};

use super::integer_matrix::{GROUP, GroupPacker};
use super::matrix::{Direction, Matrix};
use super::workers::Workers;

/// Tiles of k that are packed at a time.
const PANEL_TILES: usize = 8;
/// Integers packed at a time: 4 MiB.
const PANEL_LEN: usize = 2 << 20;
/// Most rows of the result for one task: their part of the left operand fits into an L2 cache.
const MAX_TASK_ROWS: usize = 128;
/// Rows of a task are a multiple of this, as kernels keep that many sums in registers.
const ROW_STEP: usize = 6;
/// Rows of the left operand that one task quantizes.
const QUANTIZED_ROWS: usize = 32;
/// Integers of one tile of one group.
const GROUP_LEN: usize = K_TILE * GROUP;

/// Scratch memory of products of integers.
pub(super) struct IntegerProducts {
    kernels: Kernels,
    multiply: MultiplyIntegerPanel,
    left: Integers,
    right: Integers,
}

#[derive(Default)]
struct Integers {
    q: Vec<i16>,
    scales: Vec<f32>,
}

/// Columns `first..first + n` of the result and the elements of k `k..k + k_len` that are in work.
#[derive(Clone, Copy)]
struct PanelInWork {
    first: usize,
    n: usize,
    k_len: usize,
}

impl PanelInWork {
    fn n_tiles(&self) -> usize {
        self.k_len.div_ceil(K_TILE)
    }

    /// Integers of a row of the left operand.
    fn width(&self) -> usize {
        self.k_len.next_multiple_of(PAIR)
    }

    fn n_groups(&self) -> usize {
        self.n.div_ceil(GROUP)
    }
}

impl IntegerProducts {
    /// Returns `None` if the processor has no fast product of integers.
    pub fn new(kernels: Kernels) -> Option<Self> {
        let multiply = integer_panel::find(kernels.level)?;
        Some(Self { kernels, multiply, left: Integers::default(), right: Integers::default() })
    }

    /// Most bytes of scratch memory for `n_rows`.
    pub fn max_bytes(n_rows: usize) -> u64 {
        let left = n_rows * PANEL_TILES * (K_TILE * size_of::<i16>() + size_of::<f32>());
        let right = PANEL_LEN * size_of::<i16>() + PANEL_LEN / K_TILE * size_of::<f32>();
        (left + right) as u64
    }

    /// c (rows, n) = or += a (rows, k) · Wᵀ or W.
    pub fn multiply(
        &mut self,
        workers: &mut Workers,
        a: &[f32],
        w: Matrix<'_>,
        direction: Direction,
        output: PanelOutput,
        c: &mut [f32],
    ) -> Result<(), KernelError> {
        let (k, n) = w.k_and_n(direction);
        let k_step = PANEL_TILES * K_TILE;
        for k_first in (0..k).step_by(k_step) {
            let k_len = k_step.min(k - k_first);
            let tiles = k_len.div_ceil(K_TILE);
            let columns = (PANEL_LEN / (tiles * GROUP_LEN) * GROUP).max(GROUP);
            for first in (0..n).step_by(columns) {
                let panel = PanelInWork { first, n: columns.min(n - first), k_len };
                if first == 0 {
                    self.quantize_left(workers, (a, k), k_first, &panel)?;
                }
                self.pack(workers, w, direction, k_first, &panel)?;
                let output = if k_first == 0 { output } else { PanelOutput::Add };
                self.multiply_panel(workers, &panel, output, (c, n))?;
            }
        }
        Ok(())
    }

    fn quantize_left(
        &mut self,
        workers: &mut Workers,
        (a, k): (&[f32], usize),
        k_first: usize,
        panel: &PanelInWork,
    ) -> Result<(), KernelError> {
        let (width, n_tiles, n_rows) = (panel.width(), panel.n_tiles(), a.len() / k);
        let quantize = QUANTIZE_A.at(self.kernels.level);
        let Integers { q, scales } = &mut self.left;
        q.resize(n_rows * width, 0);
        scales.resize(n_rows * n_tiles, 0.0);
        let n = QUANTIZED_ROWS;
        workers.chunk_pairs((q, n * width), (scales, n * n_tiles), &|task, q, scales| {
            let rows = q.chunks_exact_mut(width).zip(scales.chunks_exact_mut(n_tiles));
            for ((q, scales), a) in rows.zip(a.chunks_exact(k).skip(task * n)) {
                let tiles = a[k_first..k_first + panel.k_len].chunks(K_TILE).zip(q.chunks_mut(K_TILE));
                for ((a, q), scale) in tiles.zip(scales) {
                    *scale = quantize(a, q);
                }
            }
        })
    }

    fn pack(
        &mut self,
        workers: &mut Workers,
        w: Matrix<'_>,
        direction: Direction,
        k_first: usize,
        panel: &PanelInWork,
    ) -> Result<(), KernelError> {
        let Integers { q, scales } = &mut self.right;
        let n_groups = panel.n_groups();
        let n_tasks = panel.n_tiles() * n_groups;
        // What is longer than needed is neither written nor read.
        q.resize(q.len().max(n_tasks * GROUP_LEN), 0);
        scales.resize(scales.len().max(n_tasks * GROUP), 0.0);
        let (q, scales) = (&mut q[..n_tasks * GROUP_LEN], &mut scales[..n_tasks * GROUP]);
        let packer = GroupPacker { w, direction, level: self.kernels.level };
        workers.chunk_pairs((q, GROUP_LEN), (scales, GROUP), &|task, q, scales| {
            let (tile, group) = (task / n_groups, task % n_groups);
            let k = tile * K_TILE..((tile + 1) * K_TILE).min(panel.k_len);
            let columns = group * GROUP..((group + 1) * GROUP).min(panel.n);
            let k = k_first + k.start..k_first + k.end;
            packer.pack(&k, panel.first + columns.start..panel.first + columns.end, q, scales);
        })
    }

    fn multiply_panel(
        &self,
        workers: &mut Workers,
        panel: &PanelInWork,
        output: PanelOutput,
        (c, n): (&mut [f32], usize),
    ) -> Result<(), KernelError> {
        let (width, n_tiles, n_groups) = (panel.width(), panel.n_tiles(), panel.n_groups());
        let (left, right, multiply) = (&self.left, &self.right, self.multiply);
        let task_rows = task_rows(c.len() / n, workers.n_threads());
        workers.chunks(c, task_rows * n, &|task, c| {
            let row = task * task_rows;
            let (q, scales) = (&left.q[row * width..], &left.scales[row * n_tiles..]);
            for first in (0..panel.n).step_by(STRIP) {
                for tile in 0..n_tiles {
                    let shape = IntegerPanelShape {
                        n_a: c.len() / n,
                        n_pairs: K_TILE.min(panel.k_len - tile * K_TILE).div_ceil(PAIR),
                        n: STRIP.min(panel.n - first),
                        a_stride: width,
                        scale_stride: n_tiles,
                        c_stride: n,
                        output: if tile == 0 { output } else { PanelOutput::Add },
                    };
                    let a = ScaledIntegers { q: &q[tile * K_TILE..], scales: &scales[tile..] };
                    let strip = tile * n_groups * GROUP + first;
                    let b = ScaledIntegers { q: &right.q[strip * K_TILE..], scales: &right.scales[strip..] };
                    multiply(shape, a, b, &mut c[panel.first + first..]);
                }
            }
        })
    }
}

/// Rows of the result for one task, so that every thread has as many tasks.
fn task_rows(n_rows: usize, n_threads: usize) -> usize {
    let n_tasks = n_rows.div_ceil(MAX_TASK_ROWS).next_multiple_of(n_threads);
    n_rows.div_ceil(n_tasks).next_multiple_of(ROW_STEP)
}
