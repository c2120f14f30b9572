//! Matrix products on the team. Activations are quantised once for all products of one input; weight rows are cut
//! into tasks; each task goes through the tokens in tiles that stay in cache.

use std::ops::Range;

use super::Context;
use super::arena::AlignedVec;
use super::isa::IsaLevel;
use super::memory::{Memory, Values};
use super::team::Team;
use super::tile::{OutTile, Parts};
use crate::error::KernelError;
use crate::graph::{Activation, DeviceId, Graph, Op, ValueId};
use crate::matmul::{self, ActFormat, Acts, MatMulRow, WeightRows, generic};
use crate::ops::Kernels;
use crate::plan::Capacity;
use crate::plan::fuse::MAX_PRODUCTS;
use crate::tensor::Tensor;

/// Tokens that a task multiplies with its rows before it takes the next: a tile of activations of usual width stays
/// in the second-level cache beside the rows.
const TOKEN_TILE: usize = 64;
/// Weight rows in a task are a multiple of this, which every kernel's register tile divides.
const ROW_STEP: usize = 16;
/// Most bytes of weights in one task of a decode step: kernels ask for the next rows of a task while they use these,
/// so that only its first rows wait for memory.
const TASK_BYTES: usize = 512 * 1024;
/// Weight rows in one task of a prompt: they stay in the second-level cache while tokens pass.
const PROMPT_ROWS: usize = 64;
/// Multiply-adds below which one thread is as fast as many: about 2 µs.
const ALONE: usize = 32 * 1024;

/// Quantised activations and scratch of one device.
pub struct Products {
    q8_0: Quantised,
    q8_k: Quantised,
    /// for each node its fast path; None: generic
    fast: Vec<Option<&'static MatMulRow>>,
    /// (n_threads, row_stride): a decoded weight row of the generic path
    rows: AlignedVec<f32>,
    row_stride: usize,
}

/// Activations in one format, room for the largest input.
struct Quantised {
    format: ActFormat,
    q: AlignedVec<i8>,
    scales: AlignedVec<f32>,
    sums: AlignedVec<i32>,
}

impl Quantised {
    fn new(format: ActFormat, n_rows: usize, max_k: usize) -> Result<Self, KernelError> {
        let what = "quantised activations";
        Ok(Self {
            format,
            q: AlignedVec::zeroed(n_rows * max_k, what)?,
            scales: AlignedVec::zeroed(n_rows * format.n_scales(max_k), what)?,
            sums: AlignedVec::zeroed(n_rows * format.n_sums(max_k), what)?,
        })
    }

    /// data (n_tokens, k)
    fn fill(
        &mut self,
        team: &mut Team,
        quantize: matmul::Quantize,
        data: &[f32],
        x: &Operand,
    ) -> Result<(), String> {
        let Operand { k, n_tokens, .. } = *x;
        let (n_scales, n_sums) = (self.format.n_scales(k), self.format.n_sums(k));
        let (q, scales, sums) =
            (Parts::new(&mut self.q), Parts::new(&mut self.scales), Parts::new(&mut self.sums));
        let row = |t: usize| {
            // SAFETY: each row is visited once, and rows do not overlap.
            let (q, scales, sums) = unsafe {
                (
                    q.part(t * k..(t + 1) * k),
                    scales.part(t * n_scales..(t + 1) * n_scales),
                    sums.part(t * n_sums..(t + 1) * n_sums),
                )
            };
            quantize(&data[t * k..(t + 1) * k], q, scales, sums);
        };
        if n_tokens * k <= ALONE {
            return team.run(1, &|_, _| (0..n_tokens).for_each(row));
        }
        team.run(n_tokens, &|t, _| row(t))
    }

    /// What `fill` left; empty when another format was filled.
    fn acts(&self, x: &Operand) -> Acts<'_> {
        let Operand { k, n_tokens, .. } = *x;
        let n_tokens = if n_tokens * k <= self.q.len() { n_tokens } else { 0 };
        Acts {
            n_tokens,
            k,
            x: &[],
            q: &self.q[..n_tokens * k],
            scales: &self.scales[..n_tokens * self.format.n_scales(k)],
            sums: &self.sums[..n_tokens * self.format.n_sums(k)],
        }
    }
}

/// The input of a product.
#[derive(Clone)]
struct Operand {
    span: Range<usize>,
    k: usize,
    n_tokens: usize,
}

/// One product of a step.
#[derive(Clone, Copy)]
struct Product<'a> {
    weight: &'a Tensor,
    fast: Option<&'static MatMulRow>,
    /// (n_out), or empty
    bias: &'a [f32],
    /// where the output begins in the arena: (n_tokens, n_out)
    out: usize,
    n_out: usize,
}

/// Joins the two products of a step: act(gate) · up.
#[derive(Clone, Copy)]
struct Gated {
    act: Activation,
    /// whether the first product is the gate; else it is the second
    gate_first: bool,
    /// where the output begins in the arena
    out: usize,
}

/// What all tasks of a step read.
struct Job<'a> {
    kernels: &'a Kernels,
    x: Operand,
    q8_0: Acts<'a>,
    q8_k: Acts<'a>,
    arena: Parts<'a, f32>,
    /// (n_threads, stride): scratch of the generic path
    rows: Parts<'a, f32>,
    row_stride: usize,
}

impl Products {
    /// Buffers for the products of `graph` on `device`.
    pub fn new(
        graph: &Graph,
        device: DeviceId,
        capacity: &Capacity,
        level: IsaLevel,
        n_threads: usize,
    ) -> Result<Self, KernelError> {
        let mut fast = vec![None; graph.nodes().len()];
        let (mut k_q8_0, mut k_q8_k, mut k_generic) = (0, 0, 0);
        for (i, node) in graph.nodes().iter().enumerate().filter(|(_, n)| n.device == device) {
            let Op::MatMul { weight, .. } = &node.op else { continue };
            let k = weight.n_cols();
            fast[i] = matmul::find(weight.dtype(), level);
            match fast[i].map(|row| row.act) {
                None => k_generic = k_generic.max(k),
                Some(ActFormat::F32) => {}
                Some(ActFormat::Q8_0) => k_q8_0 = k_q8_0.max(k),
                Some(ActFormat::Q8_K) => k_q8_k = k_q8_k.max(k),
            }
        }
        let row_stride = k_generic.next_multiple_of(16);
        Ok(Self {
            q8_0: Quantised::new(ActFormat::Q8_0, capacity.max_rows, k_q8_0)?,
            q8_k: Quantised::new(ActFormat::Q8_K, capacity.max_rows, k_q8_k)?,
            fast,
            rows: AlignedVec::zeroed(n_threads * row_stride, "decoded weight rows")?,
            row_stride,
        })
    }

    /// Products `nodes` of one input; `glu` joins the two of them.
    pub fn run(
        &mut self,
        cx: &mut Context,
        graph: &Graph,
        nodes: &[usize],
        glu: Option<usize>,
    ) -> Result<(), String> {
        let (x, weight, _) = parts_of(graph, nodes[0]);
        let Memory { values, vectors, .. } = &mut *cx.memory;
        let x = Operand { span: values.span(x), k: weight.n_cols(), n_tokens: values.n_rows(x) };
        if x.n_tokens == 0 {
            return Ok(());
        }
        for quantised in [&mut self.q8_0, &mut self.q8_k] {
            let mut rows = nodes.iter().filter_map(|i| self.fast[*i]);
            if let Some(row) = rows.find(|row| row.act == quantised.format) {
                quantised.fill(cx.team, row.quantize, &values.arena()[x.span.clone()], &x)?;
            }
        }
        let mut products = [None; MAX_PRODUCTS];
        for (slot, i) in products.iter_mut().zip(nodes) {
            let (_, weight, out) = parts_of(graph, *i);
            let (fast, bias, out) = (self.fast[*i], &vectors[*i][..], values.span(out).start);
            *slot = Some(Product { weight, fast, bias, out, n_out: weight.n_rows() });
        }
        let glu = glu.map(|i| gated(values, graph, i, nodes[0]));
        let job = Job {
            kernels: cx.kernels,
            q8_0: self.q8_0.acts(&x),
            q8_k: self.q8_k.acts(&x),
            x,
            arena: Parts::new(values.arena()),
            rows: Parts::new(&mut self.rows),
            row_stride: self.row_stride,
        };
        match glu {
            Some(glu) => job.run_gated(cx.team, &products, glu),
            None => job.run_each(cx.team, &products),
        }
    }
}

/// Input, weight and output of a product.
fn parts_of(graph: &Graph, i: usize) -> (ValueId, &Tensor, ValueId) {
    let node = &graph.nodes()[i];
    match (&node.op, node.output) {
        (Op::MatMul { x, weight, .. }, Some(out)) => (*x, weight, out),
        _ => unreachable!("`fuse` groups products only"),
    }
}

fn gated(values: &Values, graph: &Graph, i: usize, first: usize) -> Gated {
    let node = &graph.nodes()[i];
    match (&node.op, node.output) {
        (Op::Glu { gate, act, .. }, Some(out)) => Gated {
            act: *act,
            gate_first: graph.nodes()[first].output == Some(*gate),
            out: values.span(out).start,
        },
        _ => unreachable!("`fuse` joins products by a gated unit only"),
    }
}

impl Job<'_> {
    /// Weight rows in one task, such that every thread gets several.
    fn rows_per_task(&self, n_rows: usize, row_bytes: usize, n_threads: usize) -> usize {
        let warm = if self.x.n_tokens <= 4 { TASK_BYTES / row_bytes } else { PROMPT_ROWS };
        let even = n_rows / (4 * n_threads);
        (warm.min(even) / ROW_STEP * ROW_STEP).max(ROW_STEP)
    }

    fn is_small(&self, n_rows: usize) -> bool {
        n_rows * self.x.k * self.x.n_tokens <= ALONE
    }

    fn run_each(&self, team: &mut Team, products: &[Option<Product>; MAX_PRODUCTS]) -> Result<(), String> {
        let products = || products.iter().flatten();
        let n_rows: usize = products().map(|p| p.n_out).sum();
        let row_bytes = products().map(|p| p.weight.row_bytes()).max().unwrap_or(1);
        let step = self.rows_per_task(n_rows, row_bytes, team.n_threads());
        let n_tasks = products().map(|p| p.n_out.div_ceil(step)).sum();
        let task = |mut task: usize, worker: usize| {
            for product in products() {
                let n = product.n_out.div_ceil(step);
                if task < n {
                    return self.product(
                        product,
                        task * step..((task + 1) * step).min(product.n_out),
                        worker,
                    );
                }
                task -= n;
            }
        };
        if self.is_small(n_rows) {
            return team.run(1, &|_, worker| (0..n_tasks).for_each(|t| task(t, worker)));
        }
        team.run(n_tasks, &task)
    }

    fn run_gated(
        &self,
        team: &mut Team,
        products: &[Option<Product>; MAX_PRODUCTS],
        glu: Gated,
    ) -> Result<(), String> {
        let [Some(first), Some(second), ..] = products else {
            unreachable!("`fuse` joins exactly two products");
        };
        let (gate, up) = if glu.gate_first { (first, second) } else { (second, first) };
        let n_rows = gate.n_out;
        let row_bytes = gate.weight.row_bytes() + up.weight.row_bytes();
        let step = self.rows_per_task(n_rows, row_bytes, team.n_threads());
        let task = |task: usize, worker: usize| {
            let columns = task * step..((task + 1) * step).min(n_rows);
            self.product(gate, columns.clone(), worker);
            self.product(up, columns.clone(), worker);
            for t in 0..self.x.n_tokens {
                let span =
                    |start: usize| start + t * n_rows + columns.start..start + t * n_rows + columns.end;
                // SAFETY: these columns of gate, up and out belong to this task alone.
                let (gate, up, out) = unsafe {
                    (
                        self.arena.read(span(gate.out)),
                        self.arena.read(span(up.out)),
                        self.arena.part(span(glu.out)),
                    )
                };
                (self.kernels.glu)(gate, up, glu.act, out);
            }
        };
        let n_tasks = n_rows.div_ceil(step);
        if self.is_small(2 * n_rows) {
            return team.run(1, &|_, worker| (0..n_tasks).for_each(|t| task(t, worker)));
        }
        team.run(n_tasks, &task)
    }

    /// Rows `rows` of one product, all tokens.
    fn product(&self, product: &Product, rows: Range<usize>, worker: usize) {
        let n_tokens = self.x.n_tokens;
        for start in (0..n_tokens).step_by(TOKEN_TILE) {
            let tokens = start..(start + TOKEN_TILE).min(n_tokens);
            // SAFETY: these columns of the output belong to this task alone, and the tile ends before the next.
            let mut out =
                unsafe { OutTile::of(&self.arena, product.out, product.n_out, tokens.clone(), rows.clone()) };
            self.tile(product, &rows, &tokens, worker, &mut out);
            if !product.bias.is_empty() {
                for t in 0..tokens.len() {
                    let bias = &product.bias[rows.clone()];
                    out.token(t).iter_mut().zip(bias).for_each(|(out, bias)| *out += bias);
                }
            }
        }
    }

    fn tile(
        &self,
        product: &Product,
        rows: &Range<usize>,
        tokens: &Range<usize>,
        worker: usize,
        out: &mut OutTile,
    ) {
        let (k, row_bytes) = (self.x.k, product.weight.row_bytes());
        let bytes = &product.weight.bytes()[rows.start * row_bytes..rows.end * row_bytes];
        let w = WeightRows { bytes, row_bytes, k };
        let x_span = self.x.span.start + tokens.start * k..self.x.span.start + tokens.end * k;
        // SAFETY: nobody writes the input during the step: the plan gives outputs other memory.
        let x = unsafe { self.arena.read(x_span) };
        match product.fast {
            Some(row) => {
                let acts = match row.act {
                    ActFormat::F32 => Acts { n_tokens: tokens.len(), k, x, q: &[], scales: &[], sums: &[] },
                    ActFormat::Q8_0 => self.q8_0.tokens(tokens.clone()),
                    ActFormat::Q8_K => self.q8_k.tokens(tokens.clone()),
                };
                (row.kernel)(w, acts, out);
            }
            None => {
                let scratch = worker * self.row_stride..worker * self.row_stride + k;
                // SAFETY: a worker runs one task at a time, and this stretch is its own.
                let scratch = unsafe { self.rows.part(scratch) };
                let codec = product.weight.codec();
                generic::rows(self.kernels.dot, codec, w, x, scratch, out);
            }
        }
    }
}
