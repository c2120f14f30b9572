//! Matrix products on the thread pool. Activations are quantized once for all products of one input.
//! Weight rows are cut into tasks, and each task multiplies them with tiles of tokens that stay in cache.

use std::ops::Range;

use super::StepContext;
use super::arena::AlignedVec;
use super::disjoint_slices::{DisjointSlices, OutTile};
use super::integer_products::IntegerProducts;
use super::isa::IsaLevel;
use super::matmul_operands::matmul_operands;
use super::memory::{HostMemory, ValueArena};
use super::precision::CpuPrecision;
use super::quantized_activations::{
    ActivationBuffers, BufferSizes, MAX_MEMORY_BOUND_TOKENS, MatMulWeight, PROMPT_ROWS, QuantizedActivations,
    TOKEN_TILE, rows_per_task,
};
use super::rows;
use super::thread_pool::{AssignedTask, ThreadPool};
use crate::capacity::Capacity;
use crate::error::KernelError;
use crate::graph::{Activation, DeviceId, Graph, Op};
use crate::matmul::packed_activations::PACK_TOKENS;
use crate::matmul::{self, ActivationFormat, MatMulRow};
use crate::ops::Kernels;
use crate::plan::layout::ValueLifetime;
use crate::plan::step::MAX_MATMULS;

/// Multiply-adds up to which one thread is as fast as many: about 2 µs.
const MIN_PARALLEL_MACS: usize = 32 * 1024;

/// Quantized activations and scratch of one device.
pub struct MatMulJobs {
    inputs: ActivationBuffers,
    /// For each node its fast path; `None`: generic.
    fast: Vec<Option<&'static MatMulRow>>,
    /// (n_threads, row_stride): a decoded weight row of the generic path.
    rows: AlignedVec<f32>,
    row_stride: usize,
    /// (n_threads, gate_stride): the two products of a task that a gated unit joins. Empty if they must stay
    /// readable in the arena.
    gates: AlignedVec<f32>,
    gate_stride: usize,
    /// Present if products with unquantized weights are computed in integers.
    integers: Option<IntegerProducts>,
}

/// The input of a product.
#[derive(Clone)]
struct MatMulInput {
    span: Range<usize>,
    k: usize,
    n_tokens: usize,
}

/// One product of a step.
#[derive(Clone, Copy)]
struct MatMulOp<'a> {
    factor: MatMulWeight<'a>,
    /// (n_out), or empty.
    bias: &'a [f32],
    /// Where the output begins in the arena: (n_tokens, n_out).
    out: usize,
    n_out: usize,
}

/// How the two products of a step are joined: act(gate) · up.
#[derive(Clone, Copy)]
pub struct GatedOutput {
    /// Activation of the gate.
    pub act: Activation,
    /// The first product is the gate; otherwise the second is.
    pub is_gate_first: bool,
    /// Where the output begins in the arena.
    pub out: usize,
}

/// What all tasks of a step read.
struct MatMulStep<'a> {
    kernels: &'a Kernels,
    x: MatMulInput,
    quants: QuantizedActivations<'a>,
    arena: DisjointSlices<'a, f32>,
    /// (n_threads, row_stride): scratch of the generic path.
    rows: DisjointSlices<'a, f32>,
    row_stride: usize,
    /// (n_threads, gate_stride): the two products of a task that a gated unit joins.
    gates: DisjointSlices<'a, f32>,
    gate_stride: usize,
}

impl MatMulJobs {
    /// Allocates buffers for the products of `graph` on `device`.
    pub fn new(
        graph: &Graph,
        device: DeviceId,
        capacity: &Capacity,
        lifetime: ValueLifetime,
        (level, precision): (IsaLevel, CpuPrecision),
        n_threads: usize,
    ) -> Result<Self, KernelError> {
        let mut fast = vec![None; graph.nodes().len()];
        let (mut sizes, mut k_generic) = (BufferSizes::default(), 0);
        for (i, node) in graph.nodes().iter().enumerate().filter(|(_, n)| n.device == device) {
            let Op::MatMul { weight, .. } = &node.op else { continue };
            let k = weight.n_cols();
            fast[i] = matmul::find_kernel(weight.dtype(), level);
            match fast[i] {
                None => k_generic = k_generic.max(k),
                Some(row) if row.act == ActivationFormat::F32 => {}
                row => sizes.add(row, capacity.max_rows, k),
            }
        }
        let row_stride = k_generic.next_multiple_of(16);
        let gate_stride = match lifetime {
            ValueLifetime::Needed => 2 * PROMPT_ROWS * TOKEN_TILE.min(capacity.max_rows),
            ValueLifetime::All => 0,
        };
        Ok(Self {
            inputs: ActivationBuffers::new(sizes)?,
            fast,
            rows: AlignedVec::zeroed(n_threads * row_stride, "decoded weight rows")?,
            row_stride,
            gates: AlignedVec::zeroed(n_threads * gate_stride, "gated products")?,
            gate_stride,
            integers: match precision {
                CpuPrecision::F32 => None,
                CpuPrecision::I16 => IntegerProducts::new(graph, device, capacity, level, n_threads)?,
            },
        })
    }

    /// Computes the products `nodes`, which share one input; `glu` joins two of them.
    pub fn run(
        &mut self,
        cx: &mut StepContext,
        graph: &Graph,
        nodes: &[usize],
        glu: Option<usize>,
    ) -> Result<(), String> {
        if let Some(integers) = &mut self.integers
            && IntegerProducts::takes(graph, nodes)
        {
            integers.run(cx, graph, nodes)?;
            return glu.map_or(Ok(()), |i| apply_glu(cx, graph, i));
        }
        let (x, weight, _) = matmul_operands(graph, nodes[0]);
        let HostMemory { values, vectors, .. } = &mut *cx.memory;
        let x = MatMulInput { span: values.span(x), k: weight.n_cols(), n_tokens: values.n_rows(x) };
        if x.n_tokens == 0 {
            return Ok(());
        }
        for (at, i) in nodes.iter().enumerate() {
            let of = |i: &usize| self.fast[*i].map(|row| row.act);
            let Some(row) = self.fast[*i] else { continue };
            if nodes[..at].iter().all(|before| of(before) != Some(row.act)) {
                self.inputs.fill(cx.pool, row, &values.arena()[x.span.clone()], x.k, None)?;
                let n_packs = x.n_tokens / PACK_TOKENS;
                let first = |packed: usize| Some(packed * PACK_TOKENS);
                self.inputs.interleave(cx.pool, row, (x.n_tokens, x.k), n_packs, &first)?;
            }
        }
        let mut products = [None; MAX_MATMULS];
        for (slot, i) in products.iter_mut().zip(nodes) {
            let (_, weight, out) = matmul_operands(graph, *i);
            let factor = MatMulWeight { weight, fast: self.fast[*i] };
            let (bias, out) = (&vectors[*i][..], values.span(out).start);
            *slot = Some(MatMulOp { factor, bias, out, n_out: weight.n_rows() });
        }
        let glu = glu.map(|i| gated_output(values, graph, i, nodes[0]));
        let job = MatMulStep {
            kernels: cx.kernels,
            quants: self.inputs.acts(x.n_tokens, x.k),
            x,
            arena: DisjointSlices::new(values.arena()),
            rows: DisjointSlices::new(&mut self.rows),
            row_stride: self.row_stride,
            gates: DisjointSlices::new(&mut self.gates),
            gate_stride: self.gate_stride,
        };
        match glu {
            Some(glu) => job.run_gated(cx.pool, &products, glu),
            None => job.run_each(cx.pool, &products),
        }
    }
}

/// Computes the gated unit `i` of two products that the arena holds.
fn apply_glu(cx: &mut StepContext, graph: &Graph, i: usize) -> Result<(), String> {
    let node = &graph.nodes()[i];
    match (&node.op, node.output) {
        (Op::Glu { gate, up, act }, Some(out)) => rows::glu(cx, *gate, *up, *act, out),
        _ => unreachable!("`fuse` joins products by a gated unit only"),
    }
}

/// Returns how node `i` joins two products, of which node `first` comes first.
pub fn gated_output(values: &ValueArena, graph: &Graph, i: usize, first: usize) -> GatedOutput {
    let node = &graph.nodes()[i];
    match (&node.op, node.output) {
        (Op::Glu { gate, act, .. }, Some(out)) => GatedOutput {
            act: *act,
            is_gate_first: graph.nodes()[first].output == Some(*gate),
            out: values.span(out).start,
        },
        _ => unreachable!("`fuse` joins products by a gated unit only"),
    }
}

/// Tiles of tokens that tasks multiply with their rows: whole packs, all as long as the first except the
/// last.
#[derive(Clone, Copy)]
struct TokenTiles {
    n: usize,
    len: usize,
    n_tokens: usize,
}

impl TokenTiles {
    fn tokens(self, tile: usize) -> Range<usize> {
        tile * self.len..((tile + 1) * self.len).min(self.n_tokens)
    }
}

impl MatMulStep<'_> {
    /// Cuts the tokens into tiles. All tasks of a tile precede those of the next. With enough tiles, each
    /// thread thus keeps to tokens that are in its caches from the previous operation.
    fn tiles(&self) -> TokenTiles {
        let n_tokens = self.x.n_tokens;
        let even = n_tokens.div_ceil(n_tokens.div_ceil(TOKEN_TILE));
        let len = even.next_multiple_of(PACK_TOKENS);
        TokenTiles { n: n_tokens.div_ceil(len), len, n_tokens }
    }

    fn runs_alone(&self, n_rows: usize) -> bool {
        n_rows * self.x.k * self.x.n_tokens <= MIN_PARALLEL_MACS
    }

    fn run_each(
        &self,
        pool: &mut ThreadPool,
        products: &[Option<MatMulOp>; MAX_MATMULS],
    ) -> Result<(), String> {
        let products = || products.iter().flatten();
        let n_rows: usize = products().map(|p| p.n_out).sum();
        let row_bytes = products().map(|p| p.factor.weight.row_bytes()).max().unwrap_or(1);
        let tiles = self.tiles();
        let step = rows_per_task(self.x.n_tokens, n_rows * tiles.n, row_bytes, pool.n_threads());
        let per_tile: usize = products().map(|p| p.n_out.div_ceil(step)).sum();
        let rows_of = |task: usize| {
            let mut task = task % per_tile;
            products().find_map(|product| {
                let n = product.n_out.div_ceil(step);
                if task < n {
                    return Some((product, task * step..((task + 1) * step).min(product.n_out)));
                }
                task -= n;
                None
            })
        };
        let run = |assigned: AssignedTask| {
            let next = assigned.next.and_then(rows_of);
            let next = next.as_ref().map_or(&[][..], |(product, rows)| product.factor.rows(rows));
            if let Some((product, rows)) = rows_of(assigned.task) {
                self.multiply_in_arena(
                    product,
                    &rows,
                    &tiles.tokens(assigned.task / per_tile),
                    next,
                    assigned.worker,
                );
            }
        };
        let n_tasks = tiles.n * per_tile;
        if self.runs_alone(n_rows) {
            return pool.run_alone(n_tasks, &run);
        }
        pool.run_with_next(n_tasks, &run)
    }

    fn run_gated(
        &self,
        pool: &mut ThreadPool,
        products: &[Option<MatMulOp>; MAX_MATMULS],
        glu: GatedOutput,
    ) -> Result<(), String> {
        let [Some(first), Some(second), ..] = products else {
            unreachable!("`fuse` joins exactly two products");
        };
        let (gate, up) = if glu.is_gate_first { (first, second) } else { (second, first) };
        let n_rows = gate.n_out;
        let row_bytes = gate.factor.weight.row_bytes() + up.factor.weight.row_bytes();
        let tiles = self.tiles();
        let step = rows_per_task(self.x.n_tokens, n_rows * tiles.n, row_bytes, pool.n_threads());
        let per_tile = n_rows.div_ceil(step);
        let columns = |task: usize| {
            let start = task % per_tile * step;
            start..(start + step).min(n_rows)
        };
        let run = |assigned: AssignedTask| {
            let next = assigned.next.map_or(&[][..], |next| gate.factor.rows(&columns(next)));
            let (columns, tokens) = (columns(assigned.task), tiles.tokens(assigned.task / per_tile));
            match self.x.n_tokens <= MAX_MEMORY_BOUND_TOKENS || self.gate_stride == 0 {
                true => self.gate_in_place((gate, up), glu, &columns, &tokens, next, assigned.worker),
                false => self.gate_in_scratch((gate, up), glu, &columns, &tokens, next, assigned.worker),
            }
        };
        let n_tasks = tiles.n * per_tile;
        if self.runs_alone(2 * n_rows) {
            return pool.run_alone(n_tasks, &run);
        }
        pool.run_with_next(n_tasks, &run)
    }

    /// Computes `columns` of a gated unit, with the products stored where the plan has put them.
    /// `next`: what this worker reads afterwards.
    fn gate_in_place(
        &self,
        (gate, up): (&MatMulOp, &MatMulOp),
        glu: GatedOutput,
        columns: &Range<usize>,
        tokens: &Range<usize>,
        next: &[u8],
        worker: usize,
    ) {
        self.multiply_in_arena(gate, columns, tokens, up.factor.rows(columns), worker);
        self.multiply_in_arena(up, columns, tokens, next, worker);
        for t in tokens.clone() {
            let span =
                |start: usize| start + t * gate.n_out + columns.start..start + t * gate.n_out + columns.end;
            // SAFETY: these columns of gate, up and out belong to this task alone.
            let (gate, up, out) = unsafe {
                (
                    self.arena.slice(span(gate.out)),
                    self.arena.slice(span(up.out)),
                    self.arena.slice_mut(span(glu.out)),
                )
            };
            (self.kernels.glu)(gate, up, glu.act, out);
        }
    }

    /// Like `gate_in_place`, but keeps the products in scratch. Nothing else reads them, and in the arena
    /// their rows are pages apart.
    fn gate_in_scratch(
        &self,
        (gate, up): (&MatMulOp, &MatMulOp),
        glu: GatedOutput,
        columns: &Range<usize>,
        tokens: &Range<usize>,
        next: &[u8],
        worker: usize,
    ) {
        let (n_rows, width) = (gate.n_out, columns.len());
        let scratch = worker * self.gate_stride..(worker + 1) * self.gate_stride;
        // SAFETY: a worker runs one task at a time, and this range is its own.
        let (gates, ups) = unsafe { self.gates.slice_mut(scratch) }.split_at_mut(self.gate_stride / 2);
        let (gates, ups) = (&mut gates[..tokens.len() * width], &mut ups[..tokens.len() * width]);
        self.multiply_tile(
            gate,
            columns,
            tokens,
            up.factor.rows(columns),
            worker,
            &mut OutTile::whole(gates, width),
        );
        self.multiply_tile(up, columns, tokens, next, worker, &mut OutTile::whole(ups, width));
        for (t, (gate, up)) in tokens.clone().zip(gates.chunks_exact(width).zip(ups.chunks_exact(width))) {
            let out = glu.out + t * n_rows;
            // SAFETY: these columns of the output belong to this task alone.
            let out = unsafe { self.arena.slice_mut(out + columns.start..out + columns.end) };
            (self.kernels.glu)(gate, up, glu.act, out);
        }
    }

    /// Multiplies weight rows `rows` with `tokens`, stored where the plan has put the product; `next` is what
    /// this worker reads afterwards.
    fn multiply_in_arena(
        &self,
        product: &MatMulOp,
        rows: &Range<usize>,
        tokens: &Range<usize>,
        next: &[u8],
        worker: usize,
    ) {
        // SAFETY: these columns of these tokens' output belong to this task alone.
        let mut out =
            unsafe { OutTile::of(&self.arena, product.out, product.n_out, tokens.clone(), rows.clone()) };
        self.multiply_tile(product, rows, tokens, next, worker, &mut out);
    }

    /// Multiplies weight rows `rows` with `tokens` into `out` and adds the bias.
    fn multiply_tile(
        &self,
        product: &MatMulOp,
        rows: &Range<usize>,
        tokens: &Range<usize>,
        next: &[u8],
        worker: usize,
        out: &mut OutTile,
    ) {
        let k = self.x.k;
        let x = self.x.span.start + tokens.start * k..self.x.span.start + tokens.end * k;
        let scratch = worker * self.row_stride..(worker + 1) * self.row_stride;
        // SAFETY: no task writes the input during the step, as the plan gives outputs other memory. A worker
        // runs one task at a time, and this range of scratch is its own.
        let (x, scratch) = unsafe { (self.arena.slice(x), self.rows.slice_mut(scratch)) };
        product.factor.multiply(self.kernels, rows, next, x, &self.quants, tokens, scratch, out);
        if !product.bias.is_empty() {
            for t in 0..tokens.len() {
                let bias = &product.bias[rows.clone()];
                out.token(t).iter_mut().zip(bias).for_each(|(out, bias)| *out += bias);
            }
        }
    }
}
