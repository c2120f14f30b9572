//! The part of one worker in attention: a tile of queries that share a KV head goes through chunks of
//! positions, page by page.

use std::ops::Range;

use crate::batch::Batch;
use crate::cpu::arena::AlignedVec;
use crate::cpu::disjoint_slices::DisjointSlices;
use crate::cpu::kv::KvStore;
use crate::error::KernelError;
use crate::graph::{AttentionShape, PAGE_LEN};
use crate::ops::Kernels;
use crate::ops::attention::page_operands::{PageKernels, PageQueries, SCORE_STRIDE, ValueWeights};
use crate::ops::attention::{CHUNK, Partial, visible};

/// Most queries in a tile: their scores and sums stay in the L2 cache.
pub const MAX_QUERIES: usize = 32;
/// Blocks of keys or values to prefetch ahead: computing one takes less than the latency of memory.
const PREFETCH_BLOCKS: usize = 2;

/// Scratch of one worker.
pub struct AttentionScratch {
    /// (queries, head_dim), scaled.
    q: AlignedVec<f32>,
    /// (queries, head_dim): q as integers, for pages stored as integers.
    rounded: AlignedVec<i16>,
    /// (queries): scales of `rounded`.
    scales: [f32; MAX_QUERIES],
    /// (queries, SCORE_STRIDE)
    scores: AlignedVec<f32>,
    /// (queries, head_dim): sums over the current chunk.
    pub sums: AlignedVec<f32>,
    pub partials: [Partial; MAX_QUERIES],
    /// (queries, head_dim): sums over all chunks so far.
    pub total: AlignedVec<f32>,
    pub totals: [Partial; MAX_QUERIES],
    /// Memory for unpacked keys or values of a page.
    unpacked: AlignedVec<f32>,
    pub queries: Vec<Query>,
}

/// One row and head, and the positions it sees.
#[derive(Clone)]
pub struct Query {
    /// Row in the batch.
    pub row: usize,
    /// Query head.
    pub head: usize,
    seen: Range<usize>,
}

/// What all tasks of a step read.
pub struct AttentionJob<'a> {
    pub kernels: &'a Kernels,
    pub pages: PageKernels,
    /// Kernels for requantized pages; `None`: there are none.
    pub requantized: Option<PageKernels>,
    pub kv: &'a KvStore,
    pub batch: &'a Batch<'a>,
    pub shape: &'a AttentionShape,
    /// (rows): as `Batch::ends_for` says.
    pub ends: Vec<usize>,
    /// (rows, heads, head_dim)
    pub q: &'a [f32],
    pub out: DisjointSlices<'a, f32>,
    /// Query heads of one KV head in a tile, at most `MAX_QUERIES`.
    pub heads_per_tile: usize,
    /// Head tiles of each KV head.
    pub n_subgroups: usize,
}

/// The blocks of a chunk in order of use: for each head tile the keys of all pages, then the values.
pub struct BlockWalk<'a> {
    job: &'a AttentionJob<'a>,
    table: &'a [u32],
    pages: Range<usize>,
    tiles: Range<usize>,
}

impl BlockWalk<'_> {
    /// Returns block `i` of a head tile, or of the next one; empty past the last.
    fn block(&self, tile: usize, i: usize) -> &[u8] {
        let n = self.pages.len();
        let (tile, i) = if i < 2 * n { (tile, i) } else { (tile + 1, i - 2 * n) };
        if tile >= self.tiles.end || i >= 2 * n {
            return &[];
        }
        let (layer, head) = (self.job.shape.layer, tile / self.job.n_subgroups);
        match i.checked_sub(n) {
            None => self.job.kv.keys(layer, self.table[self.pages.start + i], head),
            Some(i) => self.job.kv.values(layer, self.table[self.pages.start + i], head),
        }
    }
}

/// Merges the partial result of a later chunk. One over no positions changes nothing.
pub fn merge(kernels: &Kernels, state: Partial, total: &mut [f32], next: Partial, sums: &[f32]) -> Partial {
    if state == Partial::EMPTY {
        total.copy_from_slice(sums);
        return next;
    }
    (kernels.merge)(state, total, next, sums)
}

impl AttentionScratch {
    /// Allocates scratch for heads of length `head_dim`. Errors: out of memory.
    pub fn new(head_dim: usize) -> Result<Self, KernelError> {
        let zeroed = |n| AlignedVec::zeroed(n, "attention");
        Ok(Self {
            q: zeroed(MAX_QUERIES * head_dim)?,
            rounded: AlignedVec::zeroed(MAX_QUERIES * head_dim, "attention")?,
            scales: [0.0; MAX_QUERIES],
            scores: zeroed(MAX_QUERIES * SCORE_STRIDE)?,
            sums: zeroed(MAX_QUERIES * head_dim)?,
            partials: [Partial::EMPTY; MAX_QUERIES],
            total: zeroed(MAX_QUERIES * head_dim)?,
            totals: [Partial::EMPTY; MAX_QUERIES],
            unpacked: zeroed(PAGE_LEN * head_dim)?,
            queries: Vec::with_capacity(MAX_QUERIES),
        })
    }
}

impl AttentionJob<'_> {
    /// Returns the kernels that read `page`.
    fn page_kernels(&self, page: u32) -> PageKernels {
        match self.requantized {
            Some(requantized) if self.kv.is_requantized(self.shape.layer, page) => requantized,
            Some(_) | None => self.pages,
        }
    }

    /// Returns the positions that a row sees.
    pub fn seen_positions(&self, row: usize) -> Range<usize> {
        let end = self.ends.get(row).copied().unwrap_or_default();
        visible(self.shape, self.batch.positions[row] as usize, end)
    }

    /// Returns the chunks that a row sees.
    pub fn chunks(&self, row: usize) -> Range<usize> {
        let seen = self.seen_positions(row);
        seen.start / CHUNK..seen.end.div_ceil(CHUNK)
    }

    /// Returns the chunks that any of `rows` sees.
    pub fn chunks_of(&self, rows: Range<usize>) -> Range<usize> {
        let chunks = rows.map(|row| self.chunks(row));
        let (start, end) = chunks.fold((usize::MAX, 0), |(s, e), c| (s.min(c.start), e.max(c.end)));
        start..end
    }

    /// Returns the number of head tiles of all KV heads.
    pub fn n_head_tiles(&self) -> usize {
        self.shape.n_kv_heads * self.n_subgroups
    }

    /// Returns the query heads of a head tile.
    fn heads(&self, tile: usize) -> Range<usize> {
        let group = self.shape.n_heads / self.shape.n_kv_heads;
        let kv_head = tile / self.n_subgroups;
        let first = tile % self.n_subgroups * self.heads_per_tile;
        let last = (first + self.heads_per_tile).min(group);
        kv_head * group + first..kv_head * group + last
    }

    /// Loads the queries of `rows` and a head tile into the scratch.
    pub fn load_queries(&self, scratch: &mut AttentionScratch, rows: Range<usize>, tile: usize) {
        let d = self.shape.head_dim;
        scratch.queries.clear();
        for row in rows {
            for head in self.heads(tile) {
                let i = scratch.queries.len();
                let at = (row * self.shape.n_heads + head) * d;
                let q = &mut scratch.q[i * d..(i + 1) * d];
                for (out, x) in q.iter_mut().zip(&self.q[at..at + d]) {
                    *out = x * self.shape.scale;
                }
                if let Some(round) =
                    self.pages.round.or(self.requantized.and_then(|requantized| requantized.round))
                {
                    scratch.scales[i] = round(q, &mut scratch.rounded[i * d..(i + 1) * d]);
                }
                scratch.queries.push(Query { row, head, seen: self.seen_positions(row) });
            }
        }
    }

    /// Returns the blocks of `chunk` that `rows` see, for some head tiles.
    pub fn walk(&self, rows: Range<usize>, chunk: usize, tiles: Range<usize>) -> BlockWalk<'_> {
        let table = self.batch.table(self.kv.layout(self.shape.layer).retention(), rows.start);
        let seen = rows.map(|row| self.seen_positions(row));
        let (start, end) = seen.fold((usize::MAX, 0), |(s, e), seen| (s.min(seen.start), e.max(seen.end)));
        let (start, end) = (start.max(chunk * CHUNK), end.min((chunk + 1) * CHUNK));
        BlockWalk { job: self, table, pages: start / PAGE_LEN..end.div_ceil(PAGE_LEN), tiles }
    }

    /// Runs a tile of rows and heads through all its chunks.
    pub fn tile(&self, scratch: &mut AttentionScratch, rows: Range<usize>, tile: usize) {
        let d = self.shape.head_dim;
        self.load_queries(scratch, rows.clone(), tile);
        scratch.totals = [Partial::EMPTY; MAX_QUERIES];
        for chunk in self.chunks_of(rows.clone()) {
            self.chunk(scratch, chunk, &self.walk(rows.clone(), chunk, tile..tile + 1), tile);
            for (i, query) in scratch.queries.iter().enumerate() {
                if !self.chunks(query.row).contains(&chunk) {
                    continue;
                }
                let at = i * d..(i + 1) * d;
                let (total, sums) = (&mut scratch.total[at.clone()], &scratch.sums[at]);
                scratch.totals[i] = merge(self.kernels, scratch.totals[i], total, scratch.partials[i], sums);
            }
        }
        self.finish(scratch);
    }

    /// Computes softmax and weighted sum over one chunk for the scratch's queries, which are of `tile`.
    pub fn chunk(&self, scratch: &mut AttentionScratch, chunk: usize, walk: &BlockWalk, tile: usize) {
        let d = self.shape.head_dim;
        let n = scratch.queries.len();
        let begin = chunk * CHUNK;
        let n_pages = walk.pages.len();
        let queries =
            PageQueries { n, head_dim: d, x: &scratch.q, q: &scratch.rounded, scales: &scratch.scales };
        let mut soon: [&[u8]; PREFETCH_BLOCKS] = std::array::from_fn(|i| walk.block(tile, i));
        for (i, page) in walk.pages.clone().enumerate() {
            let ahead = walk.block(tile, i + PREFETCH_BLOCKS);
            let keys = std::mem::replace(&mut soon[i % PREFETCH_BLOCKS], ahead);
            let scores = &mut scratch.scores[page * PAGE_LEN - begin..];
            (self.page_kernels(walk.table[page]).score)(&queries, keys, ahead, &mut scratch.unpacked, scores);
        }
        let span = walk.pages.start * PAGE_LEN - begin..walk.pages.end * PAGE_LEN - begin;
        for (i, query) in scratch.queries.iter().enumerate() {
            let scores = &mut scratch.scores[i * SCORE_STRIDE..][span.clone()];
            if let Some(cap) = self.shape.softcap {
                (self.kernels.softcap)(scores, cap);
            }
            scratch.partials[i] = masked_softmax(self.kernels, scores, begin + span.start, &query.seen);
        }
        scratch.sums[..n * d].fill(0.0);
        let seen = scratch.queries.iter().map(|q| &q.seen);
        let (start, end) = seen.fold((usize::MAX, 0), |(s, e), q| (s.min(q.start), e.max(q.end)));
        for (i, page) in (n_pages..).zip(walk.pages.clone()) {
            let at = page * PAGE_LEN;
            let slots = start.max(at) - at..end.min(at + PAGE_LEN) - at;
            let ahead = walk.block(tile, i + PREFETCH_BLOCKS);
            let values = std::mem::replace(&mut soon[i % PREFETCH_BLOCKS], ahead);
            let weights = ValueWeights { n, x: &scratch.scores[at - begin..], slots };
            (self.page_kernels(walk.table[page]).sum)(
                &weights,
                d,
                values,
                ahead,
                &mut scratch.unpacked,
                &mut scratch.sums,
            );
        }
    }

    /// Writes the queries' totals, divided by their softmax sums. An attention sink is merged here as a last
    /// part without value.
    pub fn finish(&self, scratch: &AttentionScratch) {
        let d = self.shape.head_dim;
        for (i, query) in scratch.queries.iter().enumerate() {
            let at = (query.row * self.shape.n_heads + query.head) * d;
            // SAFETY: each row and head is finished by one task alone.
            let out = unsafe { self.out.slice_mut(at..at + d) };
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

/// Computes the softmax over scores of positions `begin..`, of which only `seen` count.
fn masked_softmax(kernels: &Kernels, scores: &mut [f32], begin: usize, seen: &Range<usize>) -> Partial {
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
