//! Attention on the team. Queries that share a KV head are taken together, so that keys and values are unpacked once
//! for all of them. A prompt is shared out by tiles of rows and KV heads; a few rows at depth by chunks of positions,
//! whose parts the last one to finish joins in order. Both ways do the same arithmetic for a row.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Context;
use super::arena::AlignedVec;
use super::kv::KvStore;
use super::tile::Parts;
use crate::error::KernelError;
use crate::graph::{AttentionShape, DeviceId, Graph, Op, PAGE_LEN, ValueId};
use crate::ops::Kernels;
use crate::ops::attention::{CHUNK, Partial, visible};
use crate::ops::kv_write::{load_keys, load_values};
use crate::ops::panel::PanelShape;
use crate::plan::{Batch, Capacity};

/// Queries in one tile: their scores and sums stay in the second-level cache.
const MAX_QUERIES: usize = 32;
/// Rows up to which work is shared out by chunks of positions; with more rows there are tiles enough.
const MAX_SPLIT_ROWS: usize = 4;
/// Multiply-adds below which one thread is as fast as many: about 3 µs.
const ALONE: usize = 64 * 1024;

/// Scratch of one device.
pub struct Attend {
    workers: Vec<Scratch>,
    /// (rows, heads, chunks)
    partials: Vec<Partial>,
    /// (rows, heads, chunks, head_dim)
    partial_sums: AlignedVec<f32>,
    /// (rows, KV heads, subgroups): chunks not yet finished
    unfinished: Vec<AtomicU32>,
    max_chunks: usize,
    tiles: Vec<Range<usize>>,
}

/// Scratch of one worker.
struct Scratch {
    /// (queries, head_dim), scaled
    q: AlignedVec<f32>,
    /// (queries, CHUNK)
    scores: AlignedVec<f32>,
    /// (queries, head_dim): of the current chunk
    sums: AlignedVec<f32>,
    partials: [Partial; MAX_QUERIES],
    /// (queries, head_dim): of all chunks so far
    total: AlignedVec<f32>,
    totals: [Partial; MAX_QUERIES],
    /// one block of keys or values
    block: AlignedVec<f32>,
    queries: Vec<Query>,
}

/// One row and head, and the positions it sees.
#[derive(Clone)]
struct Query {
    row: usize,
    head: usize,
    seen: Range<usize>,
}

/// What all tasks of a step read.
struct Job<'a> {
    kernels: &'a Kernels,
    kv: &'a KvStore,
    batch: &'a Batch<'a>,
    shape: &'a AttentionShape,
    /// (rows, heads, head_dim)
    q: &'a [f32],
    out: Parts<'a, f32>,
    /// query heads of one KV head that go together, at most MAX_QUERIES
    heads_per_tile: usize,
    /// tiles of heads for each KV head
    n_subgroups: usize,
}

impl Attend {
    /// Scratch for the largest attention of `graph` on `device`.
    pub fn new(
        graph: &Graph,
        device: DeviceId,
        capacity: &Capacity,
        n_threads: usize,
    ) -> Result<Self, KernelError> {
        let shapes = graph.nodes().iter().filter(|n| n.device == device).filter_map(|n| match &n.op {
            Op::Attention { attention, .. } => Some(attention),
            _ => None,
        });
        let (d, n_heads) = shapes.fold((0, 0), |(d, n), s| (s.head_dim.max(d), s.n_heads.max(n)));
        let max_chunks = (capacity.n_pages * PAGE_LEN).div_ceil(CHUNK);
        let n_partials = if n_threads > 1 { MAX_SPLIT_ROWS * n_heads * max_chunks } else { 0 };
        let workers: Result<Vec<Scratch>, KernelError> = (0..n_threads).map(|_| Scratch::new(d)).collect();
        Ok(Self {
            workers: workers?,
            partials: vec![Partial::EMPTY; n_partials],
            partial_sums: AlignedVec::zeroed(n_partials * d, "attention at depth")?,
            unfinished: (0..MAX_SPLIT_ROWS * n_heads).map(|_| AtomicU32::new(0)).collect(),
            max_chunks,
            tiles: Vec::with_capacity(capacity.max_rows),
        })
    }

    /// q (tokens, heads, head_dim) → out of the same shape
    pub fn run(
        &mut self,
        cx: &mut Context,
        q: ValueId,
        shape: &AttentionShape,
        out: ValueId,
    ) -> Result<(), String> {
        let memory = &mut *cx.memory;
        let ([q], [out]) = memory.values.borrow([q], [out]);
        let group = shape.n_heads / shape.n_kv_heads;
        let heads_per_tile = group.min(MAX_QUERIES);
        let job = Job {
            kernels: cx.kernels,
            kv: &memory.kv,
            batch: cx.batch,
            shape,
            q,
            out: Parts::new(out),
            heads_per_tile,
            n_subgroups: group.div_ceil(heads_per_tile),
        };
        let n_rows = cx.batch.n_rows();
        let n_chunks = (0..n_rows).map(|row| job.chunks(row).len()).max().unwrap_or(0);
        let n_seen: usize = (0..n_rows).map(|row| job.seen(row).len()).sum();
        let alone = n_seen * shape.n_heads * shape.head_dim <= ALONE;
        if cx.team.n_threads() > 1 && n_rows <= MAX_SPLIT_ROWS && n_chunks > 1 && !alone {
            return self.run_split(cx.team, &job, n_chunks);
        }
        self.cut_tiles(&job);
        let (tiles, workers) = (&self.tiles, Parts::new(&mut self.workers));
        let per_tile = shape.n_kv_heads * job.n_subgroups;
        let n_tasks = tiles.len() * per_tile;
        // the longest rows come last in a prompt: begin with them, so that no thread ends with a long one
        let task = |task: usize, worker: usize| {
            let task = n_tasks - 1 - task;
            // SAFETY: a worker runs one task at a time.
            let scratch = unsafe { &mut workers.part(worker..worker + 1)[0] };
            job.tile(scratch, tiles[task / per_tile].clone(), task % per_tile);
        };
        if alone {
            return cx.team.run(1, &|_, worker| (0..n_tasks).for_each(|t| task(t, worker)));
        }
        cx.team.run(n_tasks, &task)
    }

    /// Stretches of rows of one sequence, short enough for a tile.
    fn cut_tiles(&mut self, job: &Job) {
        let most = (MAX_QUERIES / job.heads_per_tile).max(1);
        self.tiles.clear();
        for row in 0..job.batch.n_rows() {
            match self.tiles.last_mut() {
                Some(tile)
                    if tile.len() < most && job.batch.sequence[tile.start] == job.batch.sequence[row] =>
                {
                    tile.end = row + 1;
                }
                _ => self.tiles.push(row..row + 1),
            }
        }
    }

    /// One task for each row, tile of heads and chunk.
    fn run_split(&mut self, team: &mut super::team::Team, job: &Job, n_chunks: usize) -> Result<(), String> {
        let (d, n_heads) = (job.shape.head_dim, job.shape.n_heads);
        let per_row = job.shape.n_kv_heads * job.n_subgroups;
        let n_tiles = job.batch.n_rows() * per_row;
        let max_chunks = self.max_chunks;
        for (tile, left) in self.unfinished[..n_tiles].iter_mut().enumerate() {
            *left.get_mut() = job.chunks(tile / per_row).len() as u32;
        }
        let unfinished = &self.unfinished;
        let workers = Parts::new(&mut self.workers);
        let (partials, sums) = (Parts::new(&mut self.partials), Parts::new(&mut self.partial_sums));
        let at = |query: &Query, chunk: usize| (query.row * n_heads + query.head) * max_chunks + chunk;
        let task = |task: usize, worker: usize| {
            let (tile, chunk) = (task / n_chunks, task % n_chunks);
            let row = tile / per_row;
            let chunks = job.chunks(row);
            if chunk >= chunks.len() {
                return;
            }
            // SAFETY: a worker runs one task at a time.
            let scratch = unsafe { &mut workers.part(worker..worker + 1)[0] };
            job.take_queries(scratch, row..row + 1, tile % per_row);
            job.chunk(scratch, chunks.start + chunk, tile % per_row);
            for (i, query) in scratch.queries.iter().enumerate() {
                let at = at(query, chunk);
                // SAFETY: this query and chunk belong to this task until it counts itself finished.
                unsafe {
                    partials.part(at..at + 1)[0] = scratch.partials[i];
                    sums.part(at * d..(at + 1) * d).copy_from_slice(&scratch.sums[i * d..(i + 1) * d]);
                }
            }
            if unfinished[tile].fetch_sub(1, Ordering::AcqRel) > 1 {
                return;
            }
            for (i, query) in scratch.queries.iter().enumerate() {
                scratch.totals[i] = Partial::EMPTY;
                for chunk in 0..chunks.len() {
                    let at = at(query, chunk);
                    // SAFETY: all chunks of this tile are finished, and the count has ordered their writes before.
                    let (partial, sum) =
                        unsafe { (partials.read(at..at + 1)[0], sums.read(at * d..(at + 1) * d)) };
                    let total = &mut scratch.total[i * d..(i + 1) * d];
                    scratch.totals[i] = join(job.kernels, scratch.totals[i], total, partial, sum);
                }
            }
            job.finish(scratch);
        };
        team.run(n_tiles * n_chunks, &task)
    }
}

/// Adds the part of a later chunk; a part over no positions changes nothing.
fn join(kernels: &Kernels, state: Partial, total: &mut [f32], next: Partial, sums: &[f32]) -> Partial {
    if state == Partial::EMPTY {
        total.copy_from_slice(sums);
        return next;
    }
    (kernels.merge)(state, total, next, sums)
}

impl Scratch {
    fn new(head_dim: usize) -> Result<Self, KernelError> {
        let zeroed = |n| AlignedVec::zeroed(n, "attention");
        Ok(Self {
            q: zeroed(MAX_QUERIES * head_dim)?,
            scores: zeroed(MAX_QUERIES * CHUNK)?,
            sums: zeroed(MAX_QUERIES * head_dim)?,
            partials: [Partial::EMPTY; MAX_QUERIES],
            total: zeroed(MAX_QUERIES * head_dim)?,
            totals: [Partial::EMPTY; MAX_QUERIES],
            block: zeroed(PAGE_LEN * head_dim)?,
            queries: Vec::with_capacity(MAX_QUERIES),
        })
    }
}

impl Job<'_> {
    fn seen(&self, row: usize) -> Range<usize> {
        visible(self.shape, self.batch.positions[row] as usize)
    }

    /// The chunks that a row looks into.
    fn chunks(&self, row: usize) -> Range<usize> {
        let seen = self.seen(row);
        seen.start / CHUNK..seen.end.div_ceil(CHUNK)
    }

    /// KV head and query heads of a tile of heads.
    fn heads(&self, tile: usize) -> (usize, Range<usize>) {
        let group = self.shape.n_heads / self.shape.n_kv_heads;
        let kv_head = tile / self.n_subgroups;
        let first = tile % self.n_subgroups * self.heads_per_tile;
        let last = (first + self.heads_per_tile).min(group);
        (kv_head, kv_head * group + first..kv_head * group + last)
    }

    /// Queries of `rows` and a tile of heads into the scratch.
    fn take_queries(&self, scratch: &mut Scratch, rows: Range<usize>, tile: usize) {
        let d = self.shape.head_dim;
        let (_, heads) = self.heads(tile);
        scratch.queries.clear();
        for row in rows {
            for head in heads.clone() {
                let i = scratch.queries.len();
                let at = (row * self.shape.n_heads + head) * d;
                for (out, x) in scratch.q[i * d..(i + 1) * d].iter_mut().zip(&self.q[at..at + d]) {
                    *out = x * self.shape.scale;
                }
                scratch.queries.push(Query { row, head, seen: self.seen(row) });
            }
        }
    }

    /// A tile of rows and heads through all its chunks.
    fn tile(&self, scratch: &mut Scratch, rows: Range<usize>, tile: usize) {
        let d = self.shape.head_dim;
        let chunks = rows.clone().map(|row| self.chunks(row));
        let (start, end) =
            chunks.fold((usize::MAX, 0), |(start, end), c| (start.min(c.start), end.max(c.end)));
        self.take_queries(scratch, rows, tile);
        scratch.totals = [Partial::EMPTY; MAX_QUERIES];
        for chunk in start..end {
            self.chunk(scratch, chunk, tile);
            for (i, query) in scratch.queries.iter().enumerate() {
                if !self.chunks(query.row).contains(&chunk) {
                    continue;
                }
                let at = i * d..(i + 1) * d;
                let (total, sums) = (&mut scratch.total[at.clone()], &scratch.sums[at]);
                scratch.totals[i] = join(self.kernels, scratch.totals[i], total, scratch.partials[i], sums);
            }
        }
        self.finish(scratch);
    }

    /// Softmax and weighted sum of the scratch's queries over one chunk.
    fn chunk(&self, scratch: &mut Scratch, chunk: usize, tile: usize) {
        let d = self.shape.head_dim;
        let n = scratch.queries.len();
        let (kv_head, _) = self.heads(tile);
        let begin = chunk * CHUNK;
        let seen = scratch.queries.iter().map(|q| &q.seen);
        let (start, end) = seen.fold((usize::MAX, 0), |(s, e), q| (s.min(q.start), e.max(q.end)));
        let (start, end) = (start.max(begin), end.min(begin + CHUNK));
        let pages = start / PAGE_LEN..end.div_ceil(PAGE_LEN);
        let layout = self.kv.layout(self.shape.layer);
        let table = self.batch.table(layout.retention(), scratch.queries[0].row);
        let halves = self.kernels.halves;
        let span = pages.start * PAGE_LEN - begin..pages.end * PAGE_LEN - begin;
        for scores in scratch.scores.chunks_exact_mut(CHUNK).take(n) {
            scores[span.clone()].fill(0.0);
        }
        for page in pages.clone() {
            let keys = self.kv.keys(self.shape.layer, table[page], kv_head);
            load_keys(halves, layout.dtype, keys, d, &mut scratch.block[..PAGE_LEN * d]);
            let shape =
                PanelShape { n_a: n, k: d, n: PAGE_LEN, a_stride: d, b_stride: PAGE_LEN, c_stride: CHUNK };
            let at = page * PAGE_LEN - begin;
            (self.kernels.panel)(shape, &scratch.q, &scratch.block, &mut scratch.scores[at..]);
        }
        for (i, query) in scratch.queries.iter().enumerate() {
            let scores = &mut scratch.scores[i * CHUNK..][span.clone()];
            if let Some(cap) = self.shape.softcap {
                (self.kernels.softcap)(scores, cap);
            }
            scratch.partials[i] = hide_and_soften(self.kernels, scores, begin + span.start, &query.seen);
        }
        scratch.sums[..n * d].fill(0.0);
        for page in pages {
            let first = start.max(page * PAGE_LEN);
            let last = end.min((page + 1) * PAGE_LEN);
            let n_values = last - page * PAGE_LEN;
            let values = self.kv.values(self.shape.layer, table[page], kv_head);
            load_values(halves, layout.dtype, values, d, &mut scratch.block[..n_values * d]);
            let shape =
                PanelShape { n_a: n, k: last - first, n: d, a_stride: CHUNK, b_stride: d, c_stride: d };
            let block = &scratch.block[first % PAGE_LEN * d..];
            (self.kernels.panel)(shape, &scratch.scores[first - begin..], block, &mut scratch.sums);
        }
    }

    /// Writes the queries' totals, divided by their sums. A sink joins here: a last part that has no value.
    fn finish(&self, scratch: &Scratch) {
        let d = self.shape.head_dim;
        for (i, query) in scratch.queries.iter().enumerate() {
            let at = (query.row * self.shape.n_heads + query.head) * d;
            // SAFETY: each row and head is finished by one task alone.
            let out = unsafe { self.out.part(at..at + d) };
            let total = scratch.totals[i];
            let scale = match &self.shape.sinks {
                None => 1.0 / total.sum,
                Some(sinks) => {
                    let max = if sinks[query.head] > total.max { sinks[query.head] } else { total.max };
                    let kept = (total.max - max).exp();
                    kept / (total.sum * kept + (sinks[query.head] - max).exp())
                }
            };
            for (out, x) in out.iter_mut().zip(&scratch.total[i * d..(i + 1) * d]) {
                *out = x * scale;
            }
        }
    }
}

/// Softmax over scores of positions `begin..`, of which only `seen` count.
fn hide_and_soften(kernels: &Kernels, scores: &mut [f32], begin: usize, seen: &Range<usize>) -> Partial {
    let end = begin + scores.len();
    let (first, last) = (seen.start.clamp(begin, end), seen.end.clamp(begin, end));
    if first >= last {
        scores.fill(0.0);
        return Partial::EMPTY;
    }
    scores[..first - begin].fill(f32::NEG_INFINITY);
    scores[last - begin..].fill(f32::NEG_INFINITY);
    (kernels.softmax)(scores)
}
