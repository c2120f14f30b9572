//! Attention in integers of 16 bits, where every row of a batch sees all positions, as in vision towers. Keys and values
//! are rounded once; then a tile of queries of one head goes through chunks of positions.
//! Guarantees: the result of a query depends on itself and the positions alone.

use std::ops::Range;

use super::job::merge;
use crate::batch::Batch;
use crate::capacity::Capacity;
use crate::cpu::StepContext;
use crate::cpu::arena::{AlignedVec, view};
use crate::cpu::disjoint_slices::DisjointSlices;
use crate::cpu::isa::IsaLevel;
use crate::cpu::kv::KvStore;
use crate::cpu::thread_pool::ThreadPool;
use crate::error::KernelError;
use crate::graph::{AttentionShape, DeviceId, Graph, Mask, Op, PAGE_LEN, Retention, ValueId};
use crate::ops::Kernels;
use crate::ops::attention::integer_softmax::{INTEGER_SOFTMAX, IntegerSoftmax};
use crate::ops::attention::page_operands::SCORE_STRIDE;
use crate::ops::attention::{CHUNK, Partial};
use crate::ops::dot::LANES;
use crate::ops::integer_panel::{
    self, IntegerPanelShape, K_TILE, MAX_B, MultiplyIntegerPanel, PAIR, PanelOutput, QUANTIZE_A,
    QUANTIZE_COLUMNS, STRIP, ScaledIntegers, limit_of_b,
};

/// Queries in a tile: with their scores and weights they stay in the L2 cache beside the keys and values of a head. A
/// multiple of the rows that the kernel keeps in registers.
const TILE_QUERIES: usize = 96;
/// Strips of keys in a chunk.
const CHUNK_STRIPS: usize = CHUNK / STRIP;
/// Pages whose keys are side by side in a strip.
const STRIP_PAGES: usize = STRIP / PAGE_LEN;
const _: () = assert!(CHUNK <= K_TILE && CHUNK.is_multiple_of(STRIP) && STRIP.is_multiple_of(PAGE_LEN));

/// Rounded keys and values of all positions, and scratch of each worker.
pub struct IntegerAttention {
    level: IsaLevel,
    multiply: MultiplyIntegerPanel,
    keys: RoundedColumns,
    values: RoundedColumns,
    workers: Vec<TileScratch>,
}

/// Tiles of the right side of products.
struct RoundedColumns {
    q: AlignedVec<i16>,
    scales: AlignedVec<f32>,
}

impl RoundedColumns {
    fn new(n_strips: usize, strip_len: usize) -> Result<Self, KernelError> {
        const WHAT: &str = "rounded keys and values";
        Ok(Self {
            q: AlignedVec::zeroed(n_strips * strip_len, WHAT)?,
            scales: AlignedVec::zeroed(n_strips * STRIP, WHAT)?,
        })
    }
}

/// Scratch of one worker.
struct TileScratch {
    /// (queries, head_dim as whole pairs)
    q: AlignedVec<i16>,
    /// (queries)
    scales: [f32; TILE_QUERIES],
    /// (queries, SCORE_STRIDE)
    scores: AlignedVec<f32>,
    /// (queries, SCORE_STRIDE): weights of the values.
    weights: AlignedVec<i16>,
    /// (queries): scales of `weights`.
    units: [f32; TILE_QUERIES],
    /// (queries, head_dim): sums over the current chunk.
    sums: AlignedVec<f32>,
    /// (queries, head_dim): sums over all chunks so far.
    total: AlignedVec<f32>,
    totals: [Partial; TILE_QUERIES],
    /// Keys of a strip (head_dim, STRIP), or values of a chunk (CHUNK, head_dim).
    floats: AlignedVec<f32>,
}

impl TileScratch {
    fn new(d: usize) -> Result<Self, KernelError> {
        const WHAT: &str = "attention";
        Ok(Self {
            q: AlignedVec::zeroed(TILE_QUERIES * d.next_multiple_of(PAIR), WHAT)?,
            scales: [0.0; TILE_QUERIES],
            scores: AlignedVec::zeroed(TILE_QUERIES * SCORE_STRIDE, WHAT)?,
            weights: AlignedVec::zeroed(TILE_QUERIES * SCORE_STRIDE, WHAT)?,
            units: [0.0; TILE_QUERIES],
            sums: AlignedVec::zeroed(TILE_QUERIES * d, WHAT)?,
            total: AlignedVec::zeroed(TILE_QUERIES * d, WHAT)?,
            totals: [Partial::EMPTY; TILE_QUERIES],
            floats: AlignedVec::zeroed(CHUNK * d, WHAT)?,
        })
    }
}

/// Strips of the keys and values of one head.
#[derive(Clone, Copy)]
struct HeadLayout {
    d: usize,
    /// Positions that every query sees.
    n: usize,
}

impl HeadLayout {
    fn n_chunks(self) -> usize {
        self.n.div_ceil(CHUNK)
    }

    fn chunk(self, chunk: usize) -> Range<usize> {
        chunk * CHUNK..((chunk + 1) * CHUNK).min(self.n)
    }

    /// Integers in a strip of keys.
    fn key_strip_len(self) -> usize {
        self.d.next_multiple_of(PAIR) * STRIP
    }

    /// Strips that the values of a position take.
    fn value_strips(self) -> usize {
        self.d.div_ceil(STRIP)
    }
}

/// Integers in a strip of values.
const VALUE_STRIP_LEN: usize = CHUNK * STRIP;

/// Returns whether an attention can be computed in integers: no score is hidden or capped, and none lacks a value.
fn takes_shape(shape: &AttentionShape) -> bool {
    let AttentionShape { head_dim, mask, window, softcap, sinks, .. } = shape;
    *mask == Mask::Bidirectional
        && *head_dim <= K_TILE
        && window.is_none()
        && softcap.is_none()
        && sinks.is_none()
}

impl IntegerAttention {
    /// Allocates memory for the attentions of `graph` on `device` that are computed in integers. `None`: there are none,
    /// or the level has no fast product.
    pub fn new(
        graph: &Graph,
        device: DeviceId,
        capacity: &Capacity,
        level: IsaLevel,
        n_threads: usize,
    ) -> Result<Option<Self>, KernelError> {
        let nodes = graph.nodes().iter().filter(|node| node.device == device);
        let shapes = nodes.filter_map(|node| match &node.op {
            Op::Attention { attention, .. } if takes_shape(attention) => Some(attention),
            _ => None,
        });
        let n_chunks = (capacity.all_pages(Retention::All) * PAGE_LEN).div_ceil(CHUNK);
        let (mut d, mut key_len, mut value_strips, mut n_heads) = (0, 0, 0, 0);
        for shape in shapes {
            let layout = HeadLayout { d: shape.head_dim, n: 0 };
            d = d.max(shape.head_dim);
            n_heads = n_heads.max(shape.n_kv_heads);
            key_len = key_len.max(layout.key_strip_len());
            value_strips = value_strips.max(layout.value_strips());
        }
        let multiply = match integer_panel::find(level) {
            Some(multiply) if d > 0 => multiply,
            Some(_) | None => return Ok(None),
        };
        let workers: Result<Vec<TileScratch>, KernelError> =
            (0..n_threads).map(|_| TileScratch::new(d)).collect();
        Ok(Some(Self {
            level,
            multiply,
            keys: RoundedColumns::new(n_heads * n_chunks * CHUNK_STRIPS, key_len)?,
            values: RoundedColumns::new(n_heads * n_chunks * value_strips, VALUE_STRIP_LEN)?,
            workers: workers?,
        }))
    }

    /// Returns whether the attention of a batch is computed in integers: all rows are of one sequence, whose keys and
    /// values are exact.
    pub fn takes(shape: &AttentionShape, batch: &Batch, kv: &KvStore) -> bool {
        takes_shape(shape)
            && batch.sequence.iter().all(|sequence| *sequence == batch.sequence[0])
            && kv.layout(shape.layer).is_exact()
            && kv.requantized(shape.layer).is_none()
    }

    /// Computes attention of q (rows, heads, head_dim) into `out` of the same shape.
    pub fn run(
        &mut self,
        cx: &mut StepContext,
        q: ValueId,
        shape: &AttentionShape,
        out: ValueId,
    ) -> Result<(), String> {
        let ends = cx.batch.ends_for(shape.mask);
        let n = ends.first().copied().unwrap_or_default();
        let layout = HeadLayout { d: shape.head_dim, n };
        self.round(cx.pool, &cx.memory.kv, cx.batch, (shape, layout))?;
        let ([q], [out]) = cx.memory.values.borrow([q], [out]);
        let job = IntegerAttentionJob {
            kernels: cx.kernels,
            softmax: INTEGER_SOFTMAX.at(self.level),
            multiply: self.multiply,
            keys: &self.keys,
            values: &self.values,
            shape,
            layout,
            q,
            out: DisjointSlices::new(out),
        };
        let n_rows = cx.batch.n_rows();
        let n_tiles = n_rows.div_ceil(TILE_QUERIES);
        let workers = DisjointSlices::new(&mut self.workers);
        // The tiles of a head follow one another, so that its keys and values stay in a cache.
        cx.pool.run(shape.n_heads * n_tiles, &|task, worker| {
            let (head, tile) = (task / n_tiles, task % n_tiles);
            let rows = tile * TILE_QUERIES..((tile + 1) * TILE_QUERIES).min(n_rows);
            // SAFETY: a worker runs one task at a time.
            let scratch = unsafe { &mut workers.slice_mut(worker..worker + 1)[0] };
            job.tile(scratch, &rows, head);
        })
    }

    /// Rounds the keys and values of all positions.
    fn round(
        &mut self,
        pool: &mut ThreadPool,
        kv: &KvStore,
        batch: &Batch,
        (shape, layout): (&AttentionShape, HeadLayout),
    ) -> Result<(), String> {
        let (n_chunks, d) = (layout.n_chunks(), layout.d);
        let (key_len, value_strips) = (layout.key_strip_len(), layout.value_strips());
        let table = batch.table(kv.layout(shape.layer).retention(), 0);
        let round = QUANTIZE_COLUMNS.at(self.level);
        let (keys, key_scales) =
            (DisjointSlices::new(&mut self.keys.q), DisjointSlices::new(&mut self.keys.scales));
        let (values, value_scales) =
            (DisjointSlices::new(&mut self.values.q), DisjointSlices::new(&mut self.values.scales));
        let workers = DisjointSlices::new(&mut self.workers);
        pool.run(shape.n_kv_heads * n_chunks, &|task, worker| {
            let (head, chunk) = (task / n_chunks, task % n_chunks);
            let positions = layout.chunk(chunk);
            // SAFETY: a worker runs one task at a time.
            let floats = unsafe { &mut workers.slice_mut(worker..worker + 1)[0].floats };
            for (i, first) in positions.clone().step_by(STRIP).enumerate() {
                let n = STRIP.min(positions.end - first);
                let pages = &table[first / PAGE_LEN..(first + n).div_ceil(PAGE_LEN)];
                gather_keys(kv, (shape.layer, head), pages, &mut floats[..d * STRIP]);
                let strip = task * CHUNK_STRIPS + i;
                // SAFETY: each strip of keys belongs to one task.
                let (q, scales) = unsafe {
                    (
                        keys.slice_mut(strip * key_len..(strip + 1) * key_len),
                        key_scales.slice_mut(strip * STRIP..(strip + 1) * STRIP),
                    )
                };
                round(&floats[..d * STRIP], STRIP, n, limit_of_b(d), q, scales);
            }
            for (first, page) in positions.clone().step_by(PAGE_LEN).zip(&table[positions.start / PAGE_LEN..])
            {
                let at = (first - positions.start) * d;
                floats[at..at + PAGE_LEN * d].copy_from_slice(view(kv.values(shape.layer, *page, head)));
            }
            let floats = &floats[..positions.len() * d];
            for i in 0..value_strips {
                let strip = task * value_strips + i;
                // SAFETY: each strip of values belongs to one task.
                let (q, scales) = unsafe {
                    (
                        values.slice_mut(strip * VALUE_STRIP_LEN..(strip + 1) * VALUE_STRIP_LEN),
                        value_scales.slice_mut(strip * STRIP..(strip + 1) * STRIP),
                    )
                };
                round(&floats[i * STRIP..], d, STRIP.min(d - i * STRIP), MAX_B, q, scales);
            }
        })
    }
}

/// Copies keys (head_dim, PAGE_LEN) of pages side by side: (head_dim, STRIP).
fn gather_keys(kv: &KvStore, (layer, head): (usize, usize), pages: &[u32], out: &mut [f32]) {
    debug_assert!(pages.len() <= STRIP_PAGES, "more pages than a strip has");
    for (i, page) in pages.iter().enumerate() {
        let keys = view::<f32>(kv.keys(layer, *page, head)).chunks_exact(PAGE_LEN);
        for (out, keys) in out.chunks_exact_mut(STRIP).zip(keys) {
            out[i * PAGE_LEN..(i + 1) * PAGE_LEN].copy_from_slice(keys);
        }
    }
}

/// What all tasks of a step read.
struct IntegerAttentionJob<'a> {
    kernels: &'a Kernels,
    softmax: IntegerSoftmax,
    multiply: MultiplyIntegerPanel,
    keys: &'a RoundedColumns,
    values: &'a RoundedColumns,
    shape: &'a AttentionShape,
    layout: HeadLayout,
    /// (rows, heads, head_dim)
    q: &'a [f32],
    out: DisjointSlices<'a, f32>,
}

impl IntegerAttentionJob<'_> {
    /// Runs the queries of some rows and one head through all chunks.
    fn tile(&self, scratch: &mut TileScratch, rows: &Range<usize>, head: usize) {
        let (d, n) = (self.layout.d, rows.len());
        self.load_queries(scratch, rows, head);
        scratch.totals[..n].fill(Partial::EMPTY);
        let kv_head = head / (self.shape.n_heads / self.shape.n_kv_heads);
        for chunk in 0..self.layout.n_chunks() {
            let of_head = kv_head * self.layout.n_chunks() + chunk;
            let positions = self.layout.chunk(chunk).len();
            self.score(scratch, n, of_head, positions);
            let partials = self.weigh(scratch, n, positions);
            self.sum_values(scratch, n, of_head, positions);
            for (i, partial) in partials.into_iter().enumerate().take(n) {
                let at = i * d..(i + 1) * d;
                let (total, sums) = (&mut scratch.total[at.clone()], &scratch.sums[at]);
                scratch.totals[i] = merge(self.kernels, scratch.totals[i], total, partial, sums);
            }
        }
        for (i, row) in rows.clone().enumerate() {
            let at = (row * self.shape.n_heads + head) * d;
            // SAFETY: each row and head belongs to one task.
            let out = unsafe { self.out.slice_mut(at..at + d) };
            let scale = 1.0 / scratch.totals[i].sum;
            for (out, x) in out.iter_mut().zip(&scratch.total[i * d..(i + 1) * d]) {
                *out = x * scale;
            }
        }
    }

    fn load_queries(&self, scratch: &mut TileScratch, rows: &Range<usize>, head: usize) {
        let d = self.layout.d;
        let width = d.next_multiple_of(PAIR);
        let round = QUANTIZE_A.at(self.kernels.level);
        for (i, row) in rows.clone().enumerate() {
            let at = (row * self.shape.n_heads + head) * d;
            let scale = round(&self.q[at..at + d], &mut scratch.q[i * width..(i + 1) * width]);
            scratch.scales[i] = scale * self.shape.scale;
        }
    }

    /// Computes the scores of `n` queries with the keys of a chunk.
    fn score(&self, scratch: &mut TileScratch, n: usize, chunk: usize, positions: usize) {
        let width = self.layout.d.next_multiple_of(PAIR);
        for i in 0..positions.div_ceil(STRIP) {
            let strip = chunk * CHUNK_STRIPS + i;
            let shape = IntegerPanelShape {
                n_a: n,
                n_pairs: width / PAIR,
                n: STRIP.min(positions - i * STRIP),
                a_stride: width,
                scale_stride: 1,
                c_stride: SCORE_STRIDE,
                output: PanelOutput::Overwrite,
            };
            let a = ScaledIntegers { q: &scratch.q, scales: &scratch.scales };
            let b = ScaledIntegers {
                q: &self.keys.q[strip * self.layout.key_strip_len()..],
                scales: &self.keys.scales[strip * STRIP..],
            };
            (self.multiply)(shape, a, b, &mut scratch.scores[i * STRIP..]);
        }
    }

    /// Computes the weights of a chunk's values.
    fn weigh(&self, scratch: &mut TileScratch, n: usize, positions: usize) -> [Partial; TILE_QUERIES] {
        let mut partials = [Partial::EMPTY; TILE_QUERIES];
        let width = positions.next_multiple_of(LANES);
        let rows = scratch.scores.chunks_exact_mut(SCORE_STRIDE);
        let rows = rows.zip(scratch.weights.chunks_exact_mut(SCORE_STRIDE));
        for (i, (scores, weights)) in rows.take(n).enumerate() {
            scores[positions..width].fill(f32::NEG_INFINITY);
            let found = (self.softmax)(&mut scores[..width], &mut weights[..width]);
            (partials[i], scratch.units[i]) = (found.partial, found.unit);
        }
        partials
    }

    /// Sums the values of a chunk by their weights.
    fn sum_values(&self, scratch: &mut TileScratch, n: usize, chunk: usize, positions: usize) {
        let (d, n_strips) = (self.layout.d, self.layout.value_strips());
        for i in 0..n_strips {
            let strip = chunk * n_strips + i;
            let shape = IntegerPanelShape {
                n_a: n,
                n_pairs: positions.div_ceil(PAIR),
                n: STRIP.min(d - i * STRIP),
                a_stride: SCORE_STRIDE,
                scale_stride: 1,
                c_stride: d,
                output: PanelOutput::Overwrite,
            };
            let a = ScaledIntegers { q: &scratch.weights, scales: &scratch.units };
            let b = ScaledIntegers {
                q: &self.values.q[strip * VALUE_STRIP_LEN..],
                scales: &self.values.scales[strip * STRIP..],
            };
            (self.multiply)(shape, a, b, &mut scratch.sums[i * STRIP..]);
        }
    }
}
