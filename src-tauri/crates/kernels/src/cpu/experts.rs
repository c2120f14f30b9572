//! Matrix products of mixture-of-experts layers. Tokens are sorted by expert, so that each chosen expert's
//! weights are read once for all its tokens.
//! Work is divided by experts and weight rows, so that a single token keeps every thread busy.
//! Guarantees: a token's result depends only on its own input and route.

use std::ops::Range;

use super::StepContext;
use super::arena::AlignedVec;
use super::disjoint_slices::{DisjointSlices, OutTile};
use super::isa::IsaLevel;
use super::matmul_jobs::{GatedOutput, gated_output};
use super::memory::HostMemory;
use super::quantized_activations::{
    ActivationBuffers, BufferSizes, MAX_MEMORY_BOUND_TOKENS, MatMulWeight, PROMPT_ROWS, QuantizedActivations,
    TOKEN_TILE, rows_per_task,
};
use super::thread_pool::{AssignedTask, ThreadPool};
use crate::capacity::Capacity;
use crate::error::KernelError;
use crate::graph::{DeviceId, Experts, Graph, Op, ValueId};
use crate::matmul::packed_activations::PACK_TOKENS;
use crate::matmul::{self, ActivationFormat, MatMulRow};
use crate::ops::{Kernels, moe_route};

/// Most weight rows of a task for a few tokens; their products fit the scratch of a tile.
const MAX_TASK_ROWS: usize = 1024;
/// Outputs in a tile of tokens and weight rows, before they are copied to each token's output.
const TILE_FLOATS: usize = if TOKEN_TILE * PROMPT_ROWS > MAX_MEMORY_BOUND_TOKENS * MAX_TASK_ROWS {
    TOKEN_TILE * PROMPT_ROWS
} else {
    MAX_MEMORY_BOUND_TOKENS * MAX_TASK_ROWS
};
/// Multiply-adds up to which one thread is as fast as many: about 2 µs.
const MIN_PARALLEL_MACS: usize = 32 * 1024;
/// Most products in a step: gate and up.
const MAX_JOINED_PRODUCTS: usize = 2;

/// Buffers for the experts of one device. A pair is a token and one of its slots: token · n_used + slot.
pub struct ExpertMatMulJobs {
    /// For each node its fast path; `None`: generic.
    fast: Vec<Option<&'static MatMulRow>>,
    groups: PairsByExpert,
    /// Rows in input order: (tokens, k) or (pairs, k).
    unsorted: ActivationBuffers,
    /// Rows sorted by expert: (pairs, k).
    gathered: ActivationBuffers,
    /// (n_threads, stride): a tile of outputs, and a decoded weight row.
    scratch: AlignedVec<f32>,
    stride: usize,
}

/// The pairs of a batch, sorted by expert.
#[derive(Default)]
struct PairsByExpert {
    /// (pairs) by rising expert, then pair.
    order: Vec<u32>,
    /// Experts in use, with their range of `order`.
    groups: Vec<(usize, Range<usize>)>,
    /// (n_experts) scratch: where the next pair of each expert goes.
    next: Vec<usize>,
    /// For each pack of rows its first row; `None` where the next group begins.
    packs: Vec<Option<usize>>,
}

impl PairsByExpert {
    /// Reserves memory for `n_pairs` and `n_experts`.
    fn reserve(&mut self, n_pairs: usize, n_experts: usize) {
        self.order.reserve(n_pairs);
        self.groups.reserve(n_experts.min(n_pairs));
        self.next.reserve(n_experts);
        self.packs.reserve(n_pairs.div_ceil(PACK_TOKENS));
    }

    /// Sorts the pairs of `route` (tokens, 2, n_used) by expert.
    fn sort(&mut self, route: &[f32], n_used: usize, n_experts: usize) {
        let pairs = || {
            let tokens = route.chunks_exact(2 * n_used);
            tokens.flat_map(|r| (0..n_used).map(|slot| moe_route::expert(r, slot, n_experts)))
        };
        self.next.clear();
        self.next.resize(n_experts, 0);
        pairs().for_each(|expert| self.next[expert] += 1);
        self.groups.clear();
        let mut start = 0;
        for (expert, next) in self.next.iter_mut().enumerate() {
            let n = std::mem::replace(next, start);
            if n > 0 {
                self.groups.push((expert, start..start + n));
            }
            start += n;
        }
        self.order.clear();
        self.order.resize(start, 0);
        for (pair, expert) in pairs().enumerate() {
            self.order[self.next[expert]] = pair as u32;
            self.next[expert] += 1;
        }
        self.packs.clear();
        for (_, pairs) in &self.groups {
            self.packs.resize(pairs.start.div_ceil(PACK_TOKENS), None);
            let whole = pairs.clone().step_by(PACK_TOKENS).take(pairs.len() / PACK_TOKENS);
            self.packs.extend(whole.map(Some));
        }
    }
}

/// One product of a step.
#[derive(Clone, Copy)]
struct ExpertMatMulOp<'a> {
    experts: &'a Experts,
    fast: Option<&'static MatMulRow>,
    /// (n_experts, n_out), or empty.
    bias: &'a [f32],
    /// Where the output begins in the arena: (pairs, n_out).
    out: usize,
}

impl<'a> ExpertMatMulOp<'a> {
    /// Returns the weights of an expert.
    fn weight(&self, expert: usize) -> MatMulWeight<'a> {
        MatMulWeight { weight: &self.experts.weights[expert], fast: self.fast }
    }
}

/// The input of a step.
#[derive(Clone)]
struct ExpertInput {
    span: Range<usize>,
    k: usize,
    n_used: usize,
    n_pairs: usize,
    /// All slots of a token share one row; otherwise each has its own.
    is_shared: bool,
}

impl ExpertInput {
    /// A single token needs no sorting: its rows are read where they are.
    fn is_in_place(&self) -> bool {
        self.n_pairs == self.n_used
    }

    /// Returns the input row of a pair.
    fn row(&self, pair: u32) -> usize {
        if self.is_shared { pair as usize / self.n_used } else { pair as usize }
    }
}

/// What all tasks of a step read.
struct ExpertStep<'a> {
    kernels: &'a Kernels,
    x: ExpertInput,
    groups: &'a PairsByExpert,
    quants: QuantizedActivations<'a>,
    /// (pairs, k) sorted by expert. Empty if no product takes floats, or if they are read in place.
    floats: &'a [f32],
    arena: DisjointSlices<'a, f32>,
    scratch: DisjointSlices<'a, f32>,
    stride: usize,
    n_out: usize,
}

impl ExpertMatMulJobs {
    /// Allocates buffers for the experts of `graph` on `device`.
    pub fn new(
        graph: &Graph,
        device: DeviceId,
        capacity: &Capacity,
        level: IsaLevel,
        n_threads: usize,
    ) -> Result<Self, KernelError> {
        let mut fast = vec![None; graph.nodes().len()];
        let (mut unsorted, mut gathered) = (BufferSizes::default(), BufferSizes::default());
        let (mut groups, mut max_k) = (PairsByExpert::default(), None);
        for (i, node) in graph.nodes().iter().enumerate().filter(|(_, n)| n.device == device) {
            let Op::ExpertMatMul { x, route, experts } = &node.op else { continue };
            let (k, n_used) = (experts.weights[0].n_cols(), graph.value(*route).width / 2);
            fast[i] = matmul::find_kernel(experts.weights[0].dtype(), level);
            let n_pairs = capacity.max_rows * n_used;
            groups.reserve(n_pairs, experts.weights.len());
            gathered.add(fast[i], n_pairs, k);
            if !takes_floats(fast[i]) {
                unsorted.add(fast[i], capacity.max_rows * graph.value(*x).width / k, k);
            }
            max_k = max_k.max(Some(k));
        }
        let stride = max_k.map_or(0, |k| TILE_FLOATS + k.next_multiple_of(16));
        Ok(Self {
            fast,
            groups,
            unsorted: ActivationBuffers::new(unsorted)?,
            gathered: ActivationBuffers::new(gathered)?,
            scratch: AlignedVec::zeroed(n_threads * stride, "products of experts")?,
            stride,
        })
    }

    /// Computes the products `nodes`, which share one input and route: a single one, or the two that `glu`
    /// joins.
    pub fn run(
        &mut self,
        cx: &mut StepContext,
        graph: &Graph,
        nodes: &[usize],
        glu: Option<usize>,
    ) -> Result<(), String> {
        let (x, route, experts, _) = expert_matmul_operands(graph, nodes[0]);
        let HostMemory { values, vectors, .. } = &mut *cx.memory;
        let (n_tokens, n_used) = (values.n_rows(x), values.width(route) / 2);
        let k = experts.weights[0].n_cols();
        let is_shared = values.width(x) == k;
        let x = ExpertInput { span: values.span(x), k, n_used, n_pairs: n_tokens * n_used, is_shared };
        self.groups.sort(values.read(route, n_tokens), n_used, experts.weights.len());
        self.take_inputs(cx.pool, nodes, &values.arena()[x.span.clone()], &x)?;
        let mut products = [None; MAX_JOINED_PRODUCTS];
        for (slot, i) in products.iter_mut().zip(nodes) {
            let (_, _, experts, out) = expert_matmul_operands(graph, *i);
            let (fast, bias, out) = (self.fast[*i], &vectors[*i][..], values.span(out).start);
            *slot = Some(ExpertMatMulOp { experts, fast, bias, out });
        }
        let glu = glu.map(|i| gated_output(values, graph, i, nodes[0]));
        let rows = if x.is_in_place() { &self.unsorted } else { &self.gathered };
        let job = ExpertStep {
            kernels: cx.kernels,
            groups: &self.groups,
            quants: rows.acts(if x.is_in_place() { x.span.len() / k } else { x.n_pairs }, k),
            floats: if x.is_in_place() { &[] } else { rows.floats(x.n_pairs, k) },
            x,
            arena: DisjointSlices::new(values.arena()),
            scratch: DisjointSlices::new(&mut self.scratch),
            stride: self.stride,
            n_out: experts.weights[0].n_rows(),
        };
        job.run(cx.pool, &products, glu)
    }

    /// Prepares rows in every format that one of `nodes` takes: quantized once for each row of `data`, then
    /// sorted.
    fn take_inputs(
        &mut self,
        pool: &mut ThreadPool,
        nodes: &[usize],
        data: &[f32],
        x: &ExpertInput,
    ) -> Result<(), String> {
        let order = &self.groups.order[..];
        let row = |i: usize| x.row(order[i]);
        if !x.is_in_place() && nodes.iter().any(|i| takes_floats(self.fast[*i])) {
            self.gathered.gather_floats(pool, data, x.k, &row, x.n_pairs)?;
        }
        for (at, i) in nodes.iter().enumerate() {
            let Some(fast) = self.fast[*i].filter(|row| row.act != ActivationFormat::F32) else { continue };
            if nodes[..at].iter().any(|before| self.fast[*before].map(|row| row.act) == Some(fast.act)) {
                continue;
            }
            if x.is_in_place() {
                self.unsorted.fill(pool, fast, data, x.k, None)?;
            } else if x.is_shared {
                self.unsorted.fill(pool, fast, data, x.k, None)?;
                let rows = self.unsorted.acts(data.len() / x.k, x.k).of(fast);
                self.gathered.gather(pool, fast, &rows, &row, x.n_pairs)?;
            } else {
                self.gathered.fill(pool, fast, data, x.k, Some(order))?;
            }
            if !x.is_in_place() {
                let packs = &self.groups.packs;
                self.gathered.interleave(pool, fast, (x.n_pairs, x.k), packs.len(), &|pack| packs[pack])?;
            }
        }
        Ok(())
    }
}

/// Rounds a tile length to whole packs, so that the tiles of a group begin where its packs do.
fn whole_packs(n: usize) -> usize {
    (n / PACK_TOKENS * PACK_TOKENS).max(PACK_TOKENS)
}

/// Returns whether a path takes unquantized activations.
fn takes_floats(fast: Option<&MatMulRow>) -> bool {
    fast.is_none_or(|row| row.act == ActivationFormat::F32)
}

/// Returns input, route, weights and output of a product.
fn expert_matmul_operands(graph: &Graph, i: usize) -> (ValueId, ValueId, &Experts, ValueId) {
    let node = &graph.nodes()[i];
    match (&node.op, node.output) {
        (Op::ExpertMatMul { x, route, experts }, Some(out)) => (*x, *route, experts, out),
        _ => unreachable!("`fuse` groups expert products only"),
    }
}

impl ExpertStep<'_> {
    /// Runs one task for each group and range of weight rows, so that an expert's weights are read once.
    fn run(
        &self,
        pool: &mut ThreadPool,
        products: &[Option<ExpertMatMulOp>; MAX_JOINED_PRODUCTS],
        glu: Option<GatedOutput>,
    ) -> Result<(), String> {
        let products = || products.iter().flatten();
        let groups = &self.groups.groups;
        let row_bytes: usize = products().map(|p| p.experts.weights[0].row_bytes()).sum();
        let per_group = self.x.n_pairs.div_ceil(groups.len().max(1));
        let n_rows = groups.len() * self.n_out;
        let step = rows_per_task(per_group, n_rows, row_bytes, pool.n_threads()).min(MAX_TASK_ROWS);
        let n_blocks = self.n_out.div_ceil(step);
        let part = |task: usize| {
            let (expert, pairs) = &groups[task / n_blocks];
            let start = task % n_blocks * step;
            (*expert, pairs, start..(start + step).min(self.n_out))
        };
        let run = |assigned: AssignedTask| {
            let (expert, pairs, rows) = part(assigned.task);
            let following = assigned.next.map(part).zip(products().next());
            let following = following.map(|((expert, _, rows), product)| product.weight(expert).rows(&rows));
            // rows in place need not be consecutive, so that a tile is one pair
            let per_tile = if self.x.is_in_place() {
                1
            } else {
                whole_packs((TILE_FLOATS / rows.len()).min(TOKEN_TILE))
            };
            for start in pairs.clone().step_by(per_tile) {
                let tile = start..(start + per_tile).min(pairs.end);
                for (i, product) in products().enumerate() {
                    let other = products().nth(i + 1).map(|product| product.weight(expert).rows(&rows));
                    let next = other.or(following).unwrap_or(&[]);
                    self.multiply_tile(product, expert, &rows, &tile, next, assigned.worker);
                }
                if let (Some(glu), [Some(first), Some(second)]) =
                    (glu, [products().next(), products().nth(1)])
                {
                    let (gate, up) = if glu.is_gate_first { (first, second) } else { (second, first) };
                    self.join_gated(gate, up, glu, &rows, &tile);
                }
            }
        };
        let n_tasks = groups.len() * n_blocks;
        if self.x.n_pairs * self.n_out * self.x.k * products().count() <= MIN_PARALLEL_MACS {
            return pool.run_alone(n_tasks, &run);
        }
        pool.run_with_next(n_tasks, &run)
    }

    /// Multiplies weight rows `rows` of one expert with the inputs of the pairs `tile` of the order. `next`
    /// is what this worker reads afterwards.
    fn multiply_tile(
        &self,
        product: &ExpertMatMulOp,
        expert: usize,
        rows: &Range<usize>,
        tile: &Range<usize>,
        next: &[u8],
        worker: usize,
    ) {
        let weight = product.weight(expert);
        let k = self.x.k;
        let scratch = worker * self.stride..(worker + 1) * self.stride;
        // SAFETY: a worker runs one task at a time, and this range is its own.
        let (outputs, decoded) = unsafe { self.scratch.slice_mut(scratch) }.split_at_mut(TILE_FLOATS);
        let outputs = &mut outputs[..tile.len() * rows.len()];
        let mut out = OutTile::whole(outputs, rows.len());
        let (inputs, x) = if self.x.is_in_place() {
            let row = self.x.row(self.groups.order[tile.start]);
            let at = self.x.span.start + row * k..self.x.span.start + (row + 1) * k;
            // SAFETY: no task writes the input during the step: the plan gives outputs other memory.
            (row..row + 1, unsafe { self.arena.slice(at) })
        } else {
            (tile.clone(), self.floats.get(tile.start * k..tile.end * k).unwrap_or(&[]))
        };
        weight.multiply(self.kernels, rows, next, x, &self.quants, &inputs, decoded, &mut out);
        let bias = product.bias.get(expert * self.n_out..(expert + 1) * self.n_out);
        for (outputs, pair) in outputs.chunks_exact(rows.len()).zip(&self.groups.order[tile.clone()]) {
            // SAFETY: these columns of the pair's output belong to this task alone.
            let out = unsafe { self.arena.slice_mut(self.output_columns(product, *pair, rows)) };
            out.copy_from_slice(outputs);
            if let Some(bias) = bias {
                out.iter_mut().zip(&bias[rows.clone()]).for_each(|(out, bias)| *out += bias);
            }
        }
    }

    /// Joins the two products of a gated unit while they are in cache.
    fn join_gated(
        &self,
        gate: &ExpertMatMulOp,
        up: &ExpertMatMulOp,
        glu: GatedOutput,
        rows: &Range<usize>,
        tile: &Range<usize>,
    ) {
        for pair in &self.groups.order[tile.clone()] {
            let columns = self.output_columns(gate, *pair, rows);
            let out = columns.start - gate.out + glu.out..columns.end - gate.out + glu.out;
            // SAFETY: these columns of gate, up and out belong to this task alone.
            let (gate, up, out) = unsafe {
                (
                    self.arena.slice(columns),
                    self.arena.slice(self.output_columns(up, *pair, rows)),
                    self.arena.slice_mut(out),
                )
            };
            (self.kernels.glu)(gate, up, glu.act, out);
        }
    }

    /// Returns columns `rows` of a pair's output, in the arena.
    fn output_columns(&self, product: &ExpertMatMulOp, pair: u32, rows: &Range<usize>) -> Range<usize> {
        let start = product.out + pair as usize * self.n_out;
        start + rows.start..start + rows.end
    }
}
