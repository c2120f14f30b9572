//! Products of activations with unquantized weights in integers of 16 bits. A task packs one strip of weight rows, which
//! is then multiplied with rows of activations, block by block.
//! Guarantees: every element depends on its row of activations and of weights alone.

use std::ops::Range;

use super::StepContext;
use super::arena::AlignedVec;
use super::disjoint_slices::{DisjointSlices, OutTile};
use super::isa::IsaLevel;
use super::matmul_operands::matmul_operands;
use super::memory::HostMemory;
use super::thread_pool::ThreadPool;
use crate::capacity::Capacity;
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, Op};
use crate::matmul::decode_floats::{decode, is_float};
use crate::ops::integer_panel::{
    self, IntegerPanelShape, K_TILE, MultiplyIntegerPanel, PAIR, PanelOutput, QUANTIZE_A, QUANTIZE_B, STRIP,
    ScaledIntegers,
};
use crate::tensor::Tensor;

/// Rows of activations that meet a tile of weights in turn. Their sums stay in the L1 cache beside it. A multiple of the
/// rows that the kernel keeps in registers.
const BLOCK_ROWS: usize = 96;
/// Least rows of activations in a task, where there are as many, so that packing the weights is a small part of it.
const MIN_TASK_ROWS: usize = 384;
/// Tasks per thread, where possible, so that threads finish together.
const TASKS_PER_THREAD: usize = 4;
/// Rows of activations that one task rounds.
const ROUNDED_ROWS: usize = 16;
/// Integers between weight rows before they are interleaved: no multiple of 4 KiB, which would map them all to the same
/// few lines of the cache.
const ROW_DISTANCE: usize = K_TILE + 32;

/// Scratch of the products of one device.
pub struct IntegerProducts {
    level: IsaLevel,
    multiply: MultiplyIntegerPanel,
    /// (rows, width): activations, where width is k as whole pairs.
    q: AlignedVec<i16>,
    /// (rows, tiles of k)
    scales: AlignedVec<f32>,
    workers: Vec<StripScratch>,
}

/// Scratch of one worker: a strip of weight rows, and the sums of a block.
struct StripScratch {
    /// (tiles of k, K_TILE / PAIR, STRIP, PAIR)
    q: AlignedVec<i16>,
    /// (tiles of k, STRIP)
    scales: AlignedVec<f32>,
    /// (STRIP, ROW_DISTANCE): one tile before its rows are interleaved.
    rows: AlignedVec<i16>,
    /// (K_TILE): elements of one row.
    decoded: AlignedVec<f32>,
    /// (BLOCK_ROWS, STRIP)
    sums: AlignedVec<f32>,
}

/// The activations of a step.
#[derive(Clone, Copy)]
struct RoundedRows<'a> {
    q: &'a [i16],
    scales: &'a [f32],
    k: usize,
}

impl RoundedRows<'_> {
    fn width(&self) -> usize {
        self.k.next_multiple_of(PAIR)
    }

    fn n_tiles(&self) -> usize {
        self.k.div_ceil(K_TILE)
    }
}

/// One product of a step.
struct IntegerProduct<'a> {
    weight: &'a Tensor,
    /// (n_out), or empty.
    bias: &'a [f32],
    /// Where the output begins in the arena: (rows, n_out).
    out: usize,
}

impl IntegerProducts {
    /// Allocates scratch for the products of `graph` on `device` that are computed in integers. `None`: there are none, or
    /// the level has no fast product.
    pub fn new(
        graph: &Graph,
        device: DeviceId,
        capacity: &Capacity,
        level: IsaLevel,
        n_threads: usize,
    ) -> Result<Option<Self>, KernelError> {
        let nodes = graph.nodes().iter().filter(|node| node.device == device);
        let widths = nodes.filter_map(|node| match &node.op {
            Op::MatMul { weight, .. } if is_float(weight.dtype()) => Some(weight.n_cols()),
            _ => None,
        });
        let (Some(k), Some(multiply)) = (widths.max(), integer_panel::find(level)) else { return Ok(None) };
        let (n_rows, n_tiles) = (capacity.max_rows, k.div_ceil(K_TILE));
        let workers: Result<Vec<StripScratch>, KernelError> =
            (0..n_threads).map(|_| StripScratch::new(n_tiles)).collect();
        Ok(Some(Self {
            level,
            multiply,
            q: AlignedVec::zeroed(n_rows * k.next_multiple_of(PAIR), "rounded activations")?,
            scales: AlignedVec::zeroed(n_rows * n_tiles, "rounded activations")?,
            workers: workers?,
        }))
    }

    /// Returns whether all products `nodes` of a step are computed in integers.
    pub fn takes(graph: &Graph, nodes: &[usize]) -> bool {
        nodes.iter().all(|i| is_float(matmul_operands(graph, *i).1.dtype()))
    }

    /// Computes the products `nodes`, which share one input.
    pub fn run(&mut self, cx: &mut StepContext, graph: &Graph, nodes: &[usize]) -> Result<(), String> {
        let HostMemory { values, vectors, .. } = &mut *cx.memory;
        let (x, weight, _) = matmul_operands(graph, nodes[0]);
        let (k, n_rows, span) = (weight.n_cols(), values.n_rows(x), values.span(x));
        if n_rows == 0 {
            return Ok(());
        }
        self.round(cx.pool, &values.arena()[span], k)?;
        let products: Vec<IntegerProduct> = nodes
            .iter()
            .map(|i| {
                let (_, weight, out) = matmul_operands(graph, *i);
                IntegerProduct { weight, bias: &vectors[*i], out: values.span(out).start }
            })
            .collect();
        let n_strips: usize = products.iter().map(|product| product.weight.n_rows().div_ceil(STRIP)).sum();
        let part_rows = part_rows(n_rows, n_strips, cx.pool.n_threads());
        let n_parts = n_rows.div_ceil(part_rows);
        let strip_at = |mut strip: usize| {
            products.iter().find_map(|product| {
                let n_out = product.weight.n_rows();
                let n = n_out.div_ceil(STRIP);
                if strip < n {
                    return Some((product, strip * STRIP..((strip + 1) * STRIP).min(n_out)));
                }
                strip -= n;
                None
            })
        };
        let x = RoundedRows { q: &self.q, scales: &self.scales, k };
        let (level, multiply) = (self.level, self.multiply);
        let (arena, workers) = (DisjointSlices::new(values.arena()), DisjointSlices::new(&mut self.workers));
        cx.pool.run(n_strips * n_parts, &|task, worker| {
            let Some((product, columns)) = strip_at(task / n_parts) else { return };
            let part = task % n_parts;
            let rows = part * part_rows..((part + 1) * part_rows).min(n_rows);
            // SAFETY: a worker runs one task at a time.
            let scratch = unsafe { &mut workers.slice_mut(worker..worker + 1)[0] };
            scratch.pack(level, product.weight, &columns);
            // SAFETY: these columns of these rows belong to this task alone, and the rounded input lies elsewhere.
            let mut out = unsafe {
                OutTile::of(&arena, product.out, product.weight.n_rows(), rows.clone(), columns.clone())
            };
            let bias = product.bias.get(columns).unwrap_or(&[]);
            scratch.multiply(multiply, &x, &rows, bias, &mut out);
        })
    }

    /// Rounds x (rows, k).
    fn round(&mut self, pool: &mut ThreadPool, x: &[f32], k: usize) -> Result<(), String> {
        let (width, n_tiles, n_rows) = (k.next_multiple_of(PAIR), k.div_ceil(K_TILE), x.len() / k);
        let quantize = QUANTIZE_A.at(self.level);
        let (q, scales) = (DisjointSlices::new(&mut self.q), DisjointSlices::new(&mut self.scales));
        pool.run(n_rows.div_ceil(ROUNDED_ROWS), &|task, _| {
            for row in task * ROUNDED_ROWS..((task + 1) * ROUNDED_ROWS).min(n_rows) {
                // SAFETY: each row is visited once, and rows do not overlap.
                let (q, scales) = unsafe {
                    (
                        q.slice_mut(row * width..(row + 1) * width),
                        scales.slice_mut(row * n_tiles..(row + 1) * n_tiles),
                    )
                };
                let tiles = x[row * k..(row + 1) * k].chunks(K_TILE).zip(q.chunks_mut(K_TILE));
                for ((x, q), scale) in tiles.zip(scales) {
                    *scale = quantize(x, q);
                }
            }
        })
    }
}

/// Returns the rows of activations in one task.
fn part_rows(n_rows: usize, n_strips: usize, n_threads: usize) -> usize {
    let most = (n_rows / MIN_TASK_ROWS).max(1);
    let n_parts = (TASKS_PER_THREAD * n_threads).div_ceil(n_strips).min(most);
    n_rows.div_ceil(n_parts).next_multiple_of(BLOCK_ROWS)
}

impl StripScratch {
    fn new(n_tiles: usize) -> Result<Self, KernelError> {
        const WHAT: &str = "a strip of weights";
        Ok(Self {
            q: AlignedVec::zeroed(n_tiles * K_TILE * STRIP, WHAT)?,
            scales: AlignedVec::zeroed(n_tiles * STRIP, WHAT)?,
            rows: AlignedVec::zeroed(STRIP * ROW_DISTANCE, WHAT)?,
            decoded: AlignedVec::zeroed(K_TILE, WHAT)?,
            sums: AlignedVec::zeroed(BLOCK_ROWS * STRIP, WHAT)?,
        })
    }

    /// Packs weight rows `rows`, at most `STRIP`.
    fn pack(&mut self, level: IsaLevel, weight: &Tensor, rows: &Range<usize>) {
        let Self { q, scales, rows: tile, decoded, .. } = self;
        let quantize = QUANTIZE_B.at(level);
        let (k, row_bytes, dtype) = (weight.n_cols(), weight.row_bytes(), weight.dtype());
        let tiles = q.chunks_exact_mut(K_TILE * STRIP).zip(scales.chunks_exact_mut(STRIP));
        for (first, (q, scales)) in (0..k).step_by(K_TILE).zip(tiles) {
            let len = K_TILE.min(k - first);
            let width = len.next_multiple_of(PAIR);
            let decoded = &mut decoded[..len];
            scales.fill(0.0);
            for (i, scale) in scales[..rows.len()].iter_mut().enumerate() {
                let start = (rows.start + i) * row_bytes + dtype.row_bytes(first);
                let bytes = &weight.bytes()[start..start + dtype.row_bytes(len)];
                decode(level, dtype, bytes, decoded);
                *scale = quantize(decoded, &mut tile[i * ROW_DISTANCE..][..width]);
            }
            for (pair, q) in q.chunks_exact_mut(STRIP * PAIR).take(width / PAIR).enumerate() {
                for (i, q) in q.as_chunks_mut::<PAIR>().0.iter_mut().enumerate() {
                    let at = i * ROW_DISTANCE + pair * PAIR;
                    *q = [tile[at], tile[at + 1]];
                }
            }
        }
    }

    /// Multiplies rows `rows` of `x` with the packed weight rows, and adds their bias.
    fn multiply(
        &mut self,
        multiply: MultiplyIntegerPanel,
        x: &RoundedRows,
        rows: &Range<usize>,
        bias: &[f32],
        out: &mut OutTile,
    ) {
        let (width, n_tiles) = (x.width(), x.n_tiles());
        for first in rows.clone().step_by(BLOCK_ROWS) {
            let n_a = BLOCK_ROWS.min(rows.end - first);
            for tile in 0..n_tiles {
                let shape = IntegerPanelShape {
                    n_a,
                    n_pairs: K_TILE.min(x.k - tile * K_TILE).div_ceil(PAIR),
                    n: out.n_rows(),
                    a_stride: width,
                    scale_stride: n_tiles,
                    c_stride: STRIP,
                    output: if tile == 0 { PanelOutput::Overwrite } else { PanelOutput::Add },
                };
                let a = ScaledIntegers {
                    q: &x.q[first * width + tile * K_TILE..],
                    scales: &x.scales[first * n_tiles + tile..],
                };
                let b = ScaledIntegers {
                    q: &self.q[tile * K_TILE * STRIP..],
                    scales: &self.scales[tile * STRIP..],
                };
                multiply(shape, a, b, &mut self.sums);
            }
            for (t, sums) in self.sums.chunks_exact(STRIP).take(n_a).enumerate() {
                let out = out.token(first - rows.start + t);
                out.copy_from_slice(&sums[..out.len()]);
                out.iter_mut().zip(bias).for_each(|(out, bias)| *out += bias);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_suffice_for_all_threads() {
        for (n_rows, n_strips, n_threads, expected) in [
            (3072, 64, 2, 3072),
            // sixteen strips for sixteen threads: four parts each
            (3072, 16, 16, 768),
            // no part is shorter than packing pays for
            (768, 16, 16, 384),
            (100, 16, 16, 192),
        ] {
            assert_eq!(part_rows(n_rows, n_strips, n_threads), expected, "{n_rows} rows, {n_strips} strips");
        }
    }
}
