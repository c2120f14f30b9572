//! Attention on the thread pool. Queries that share a KV head are processed together, so that keys and values
//! are unpacked once for all of them.
//! A prompt is divided by tiles of rows and KV heads. A few rows with a long context are divided by chunks of
//! positions; the last task to finish merges the partial results in order. Both ways do the same arithmetic
//! for a row.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use super::StepContext;
use super::arena::AlignedVec;
use super::disjoint_slices::DisjointSlices;
use super::isa::IsaLevel;
use super::precision::CpuPrecision;
use super::thread_pool::ThreadPool;
use crate::capacity::Capacity;
use crate::error::KernelError;
use crate::graph::{AttentionShape, DeviceId, Graph, Op, PAGE_LEN, Retention, ValueId};
use crate::ops::attention::{CHUNK, Partial, pages};

mod integers;
mod job;

use integers::IntegerAttention;
use job::{AttentionJob, AttentionScratch, MAX_QUERIES, Query, merge};

/// Most rows for which work is divided by chunks of positions; more rows give enough tiles.
const MAX_SPLIT_ROWS: usize = 8;
/// Least tasks per thread when work is divided by chunks, where possible, so that threads finish together.
const TASKS_PER_THREAD: usize = 16;
/// Multiply-adds up to which one thread is as fast as many: about 3 µs.
const MIN_PARALLEL_MACS: usize = 64 * 1024;

/// Attention scratch of one device.
pub struct CpuAttention {
    workers: Vec<AttentionScratch>,
    /// (rows, heads, chunks)
    partials: Vec<Partial>,
    /// (rows, heads, chunks, head_dim)
    partial_sums: AlignedVec<f32>,
    /// (tiles of rows, tiles of heads): chunks not yet finished.
    unfinished: Vec<AtomicU32>,
    max_chunks: usize,
    tiles: Vec<Range<usize>>,
    /// Present if attention over all positions is computed in integers.
    integers: Option<IntegerAttention>,
}

/// Returns (head_dim, n_heads), each the largest of any attention of `graph` on `device`.
fn max_head_dim_and_heads(graph: &Graph, device: DeviceId) -> (usize, usize) {
    let shapes = graph.nodes().iter().filter(|n| n.device == device).filter_map(|n| match &n.op {
        Op::Attention { attention, .. } => Some(attention),
        _ => None,
    });
    shapes.fold((0, 0), |(d, n), s| (s.head_dim.max(d), s.n_heads.max(n)))
}

/// Returns the bytes of partial attention results over `n_pages`, before they are merged.
pub fn partial_bytes(graph: &Graph, device: DeviceId, n_pages: usize) -> u64 {
    let (d, n_heads) = max_head_dim_and_heads(graph, device);
    shared_attention_bytes(n_heads, d, n_pages * PAGE_LEN)
}

/// Returns the same over `n_positions`, for heads of length `d`.
pub fn shared_attention_bytes(n_heads: usize, d: usize, n_positions: usize) -> u64 {
    let n_partials = (MAX_SPLIT_ROWS * n_heads) as u64 * n_positions.div_ceil(CHUNK) as u64;
    n_partials * (size_of::<Partial>() + d * size_of::<f32>()) as u64
}

impl CpuAttention {
    /// Allocates scratch for the largest attention of `graph` on `device`.
    pub fn new(
        graph: &Graph,
        device: DeviceId,
        capacity: &Capacity,
        (level, precision): (IsaLevel, CpuPrecision),
        n_threads: usize,
    ) -> Result<Self, KernelError> {
        let (d, n_heads) = max_head_dim_and_heads(graph, device);
        let max_chunks = (capacity.all_pages(Retention::All) * PAGE_LEN).div_ceil(CHUNK);
        let n_partials = if n_threads > 1 { MAX_SPLIT_ROWS * n_heads * max_chunks } else { 0 };
        let workers: Result<Vec<AttentionScratch>, KernelError> =
            (0..n_threads).map(|_| AttentionScratch::new(d)).collect();
        Ok(Self {
            workers: workers?,
            partials: vec![Partial::EMPTY; n_partials],
            partial_sums: AlignedVec::zeroed(n_partials * d, "attention at depth")?,
            unfinished: (0..MAX_SPLIT_ROWS * n_heads).map(|_| AtomicU32::new(0)).collect(),
            max_chunks,
            tiles: Vec::with_capacity(capacity.max_rows),
            integers: match precision {
                CpuPrecision::F32 => None,
                CpuPrecision::I16 => IntegerAttention::new(graph, device, capacity, level, n_threads)?,
            },
        })
    }

    /// Computes attention of q (tokens, heads, head_dim) into `out` of the same shape.
    pub fn run(
        &mut self,
        cx: &mut StepContext,
        q: ValueId,
        shape: &AttentionShape,
        out: ValueId,
    ) -> Result<(), String> {
        if let Some(integers) = &mut self.integers
            && IntegerAttention::takes(shape, cx.batch, &cx.memory.kv)
        {
            return integers.run(cx, q, shape, out);
        }
        let memory = &mut *cx.memory;
        let ([q], [out]) = memory.values.borrow([q], [out]);
        let group = shape.n_heads / shape.n_kv_heads;
        let heads_per_tile = group.min(MAX_QUERIES);
        let job = AttentionJob {
            kernels: cx.kernels,
            pages: pages::at(memory.kv.layout(shape.layer).precision, cx.kernels.level),
            requantized: memory
                .kv
                .requantized(shape.layer)
                .map(|layout| pages::at(layout.precision, cx.kernels.level)),
            kv: &memory.kv,
            batch: cx.batch,
            shape,
            ends: cx.batch.ends_for(shape.mask),
            q,
            out: DisjointSlices::new(out),
            heads_per_tile,
            n_subgroups: group.div_ceil(heads_per_tile),
        };
        self.cut_tiles(&job);
        let n_rows = cx.batch.n_rows();
        let n_chunks = self.tiles.iter().map(|rows| job.chunks_of(rows.clone()).len()).max().unwrap_or(0);
        let n_seen: usize = (0..n_rows).map(|row| job.seen_positions(row).len()).sum();
        let alone = n_seen * shape.n_heads * shape.head_dim <= MIN_PARALLEL_MACS;
        if cx.pool.n_threads() > 1 && n_rows <= MAX_SPLIT_ROWS && n_chunks > 1 && !alone {
            return self.run_split(cx.pool, &job, n_chunks);
        }
        let (tiles, workers) = (&self.tiles, DisjointSlices::new(&mut self.workers));
        let per_tile = job.n_head_tiles();
        let n_tasks = tiles.len() * per_tile;
        // The longest rows of a prompt come last. Each thread starts with its longest task, so that stolen
        // tasks are short.
        let task = |task: usize, worker: usize| {
            let task = n_tasks - 1 - task;
            // SAFETY: a worker runs one task at a time.
            let scratch = unsafe { &mut workers.slice_mut(worker..worker + 1)[0] };
            job.tile(scratch, tiles[task / per_tile].clone(), task % per_tile);
        };
        if alone {
            return cx.pool.run(1, &|_, worker| (0..n_tasks).for_each(|t| task(t, worker)));
        }
        cx.pool.run(n_tasks, &task)
    }

    /// Cuts the rows of each sequence into tiles.
    fn cut_tiles(&mut self, job: &AttentionJob) {
        let max_rows = (MAX_QUERIES / job.heads_per_tile).max(1);
        self.tiles.clear();
        for row in 0..job.batch.n_rows() {
            match self.tiles.last_mut() {
                Some(tile)
                    if tile.len() < max_rows && job.batch.sequence[tile.start] == job.batch.sequence[row] =>
                {
                    tile.end = row + 1;
                }
                _ => self.tiles.push(row..row + 1),
            }
        }
    }

    /// Runs one task for each tile of rows, chunk, and range of head tiles, whose blocks are consecutive.
    fn run_split(
        &mut self,
        pool: &mut ThreadPool,
        job: &AttentionJob,
        n_chunks: usize,
    ) -> Result<(), String> {
        let (d, n_heads) = (job.shape.head_dim, job.shape.n_heads);
        let (tiles, max_chunks, n_head_tiles) = (&self.tiles, self.max_chunks, job.n_head_tiles());
        let n_parts = tiles.len() * n_chunks;
        for (i, left) in self.unfinished[..tiles.len() * n_head_tiles].iter_mut().enumerate() {
            *left.get_mut() = job.chunks_of(tiles[i / n_head_tiles].clone()).len() as u32;
        }
        let unfinished = &self.unfinished;
        let workers = DisjointSlices::new(&mut self.workers);
        let (partials, sums) =
            (DisjointSlices::new(&mut self.partials), DisjointSlices::new(&mut self.partial_sums));
        let at = |query: &Query, chunk: usize| (query.row * n_heads + query.head) * max_chunks + chunk;
        let merge_all = |scratch: &mut AttentionScratch, chunks: Range<usize>| {
            for (i, query) in scratch.queries.iter().enumerate() {
                scratch.totals[i] = Partial::EMPTY;
                for chunk in job.chunks(query.row) {
                    let at = at(query, chunk - chunks.start);
                    // SAFETY: all chunks of this tile are finished, and the counter orders their writes
                    // before this read.
                    let (partial, sum) =
                        unsafe { (partials.slice(at..at + 1)[0], sums.slice(at * d..(at + 1) * d)) };
                    let total = &mut scratch.total[i * d..(i + 1) * d];
                    scratch.totals[i] = merge(job.kernels, scratch.totals[i], total, partial, sum);
                }
            }
            job.finish(scratch);
        };
        let min_tasks = TASKS_PER_THREAD * pool.n_threads();
        let tiles_per_task = (n_parts * n_head_tiles / min_tasks).clamp(1, n_head_tiles);
        let n_tile_ranges = n_head_tiles.div_ceil(tiles_per_task);
        let task = |task: usize, worker: usize| {
            let (part, first) = (task / n_tile_ranges, task % n_tile_ranges * tiles_per_task);
            let (tile, rows) = (part / n_chunks, tiles[part / n_chunks].clone());
            let chunks = job.chunks_of(rows.clone());
            let chunk = chunks.start + part % n_chunks;
            if chunk >= chunks.end {
                return;
            }
            // SAFETY: a worker runs one task at a time.
            let scratch = unsafe { &mut workers.slice_mut(worker..worker + 1)[0] };
            let walk = job.walk(rows.clone(), chunk, first..(first + tiles_per_task).min(n_head_tiles));
            for head_tile in first..(first + tiles_per_task).min(n_head_tiles) {
                job.load_queries(scratch, rows.clone(), head_tile);
                job.chunk(scratch, chunk, &walk, head_tile);
                for (i, query) in scratch.queries.iter().enumerate() {
                    let at = at(query, chunk - chunks.start);
                    // SAFETY: this query and chunk belong to this task until it decrements the counter.
                    unsafe {
                        partials.slice_mut(at..at + 1)[0] = scratch.partials[i];
                        sums.slice_mut(at * d..(at + 1) * d)
                            .copy_from_slice(&scratch.sums[i * d..(i + 1) * d]);
                    }
                }
                if unfinished[tile * n_head_tiles + head_tile].fetch_sub(1, Ordering::AcqRel) == 1 {
                    merge_all(scratch, chunks.clone());
                }
            }
        };
        pool.run(n_parts * n_tile_ranges, &task)
    }
}
