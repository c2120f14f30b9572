//! The specification as a backend: every node separately, one thread, f32 activations, weights decoded row by row.
//! Written to be read; `Cpu` and `Gpu` are tested against it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use weights::TensorView;

use crate::backend::{Backend, BackendKind};
use crate::batch::Batch;
use crate::capacity::Capacity;
use crate::cpu::isa::IsaLevel;
use crate::cpu::memory::{HostMemory, ValueArena};
use crate::error::KernelError;
use crate::graph::{
    AttentionShape, DeviceId, Graph, Lookup, MixFactors, Op, PAGE_LEN, Retention, RowMerge, ValueId,
};
use crate::interrupt::Interrupt;
use crate::matmul::generic;
use crate::ops::{
    self, activate, add, attention, clamp, columns, embed, expert_matmul, expert_sum, gaussian_top_k, glu,
    hadamard, join_columns, kv_write, layer_norm, match_rms, mix, moe_route, output_rows, rms_norm, rope,
    route_all, scale, softcap,
};
use crate::plan::fuse::Fusion;
use crate::plan::layout::ValueLifetime;
use crate::plan::step::Step;
use crate::profile::{Observer, StepProfile};
use crate::tensor::Tensor;

mod recurrent;

/// The reference backend: one thread, plain Rust.
#[derive(Default)]
pub struct Scalar {
    memory: Option<HostMemory>,
    scratch: ScalarScratch,
    interrupt: Option<Interrupt>,
}

/// Scratch memory, grown to the longest row and context.
#[derive(Default)]
struct ScalarScratch {
    row: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
    scores: Vec<f32>,
    page: Vec<f32>,
}

impl Scalar {
    /// A backend without memory until `prepare`.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Backend for Scalar {
    fn kind(&self) -> BackendKind {
        BackendKind::Scalar
    }

    fn describe(&self) -> String {
        "scalar, 1 thread".to_owned()
    }

    fn upload(&self, view: &TensorView) -> Result<Tensor, KernelError> {
        Tensor::host(view)
    }

    fn prepare(
        &mut self,
        graph: &Arc<Graph>,
        device: DeviceId,
        capacity: Capacity,
        lifetime: ValueLifetime,
    ) -> Result<(), KernelError> {
        self.memory = Some(HostMemory::new(graph, device, capacity, lifetime, Fusion::None)?);
        Ok(())
    }

    fn begin(&mut self, batch: &Batch) -> Result<(), KernelError> {
        memory_mut(&mut self.memory).begin(batch);
        Ok(())
    }

    fn run(
        &mut self,
        nodes: Range<usize>,
        batch: &Batch,
        mut observer: Option<Observer>,
    ) -> Result<(), KernelError> {
        let memory = memory_mut(&mut self.memory);
        for i in nodes {
            if self.interrupt.as_ref().is_some_and(Interrupt::is_requested) {
                return Err(KernelError::Interrupted);
            }
            node(memory, &mut self.scratch, i, batch);
            if let Some(observe) = &mut observer {
                observe(&StepProfile {
                    graph: &memory.graph,
                    batch,
                    step: &Step::Node(i),
                    values: &memory.values,
                    span: None,
                });
            }
        }
        Ok(())
    }

    fn set_interrupt(&mut self, interrupt: Option<Interrupt>) {
        self.interrupt = interrupt;
    }

    fn read(&self, value: ValueId, n_rows: usize) -> &[f32] {
        memory_ref(&self.memory).values.read(value, n_rows)
    }

    fn write(&mut self, value: ValueId, data: &[f32]) {
        memory_mut(&mut self.memory).values.write(value, data);
    }

    fn kv_page(&self, layer: usize, page: u32) -> Result<Cow<'_, [u8]>, KernelError> {
        Ok(Cow::Borrowed(memory_ref(&self.memory).kv.page(layer, page)))
    }

    fn write_kv_page(&mut self, layer: usize, page: u32, bytes: &[u8]) -> Result<(), KernelError> {
        memory_mut(&mut self.memory).kv.page_mut(layer, page).copy_from_slice(bytes);
        Ok(())
    }

    fn release_kv_page(&mut self, page: u32) {
        memory_mut(&mut self.memory).kv.release_page(page);
    }

    fn copy_kv_page(&mut self, retention: Retention, from: u32, to: u32) -> Result<(), KernelError> {
        memory_mut(&mut self.memory).kv.copy_page(retention, from, to);
        Ok(())
    }

    fn state(&self, layer: usize, slot: u32) -> Result<Cow<'_, [u8]>, KernelError> {
        Ok(Cow::Borrowed(memory_ref(&self.memory).states.bytes(layer, slot)))
    }

    fn write_state(&mut self, layer: usize, slot: u32, bytes: &[u8]) -> Result<(), KernelError> {
        memory_mut(&mut self.memory).states.bytes_mut(layer, slot).copy_from_slice(bytes);
        Ok(())
    }

    fn copy_state(&mut self, from: u32, to: u32) -> Result<(), KernelError> {
        memory_mut(&mut self.memory).states.copy(from, to);
        Ok(())
    }
}

fn memory_mut(memory: &mut Option<HostMemory>) -> &mut HostMemory {
    memory.as_mut().expect("the executor prepares a backend before it runs it")
}

fn memory_ref(memory: &Option<HostMemory>) -> &HostMemory {
    memory.as_ref().expect("the executor prepares a backend before it reads from it")
}

/// Runs one node for all rows of the batch.
fn node(memory: &mut HostMemory, scratch: &mut ScalarScratch, i: usize, batch: &Batch) {
    let graph = memory.graph.clone();
    let node = &graph.nodes()[i];
    let (vector, bias) = (&memory.vectors[i][..], &memory.biases[i][..]);
    let out = node.output.unwrap_or(graph.output());
    let values = &mut memory.values;
    match &node.op {
        Op::Embed { table, scale, by } => look_up(values, batch, (table, *by), *scale, out),
        Op::Given { start, .. } => given(values, batch, *start, out),
        Op::ReplaceGiven { x, start } => replace_given(values, batch, *x, *start, out),
        Op::RmsNorm { x, eps, .. } => {
            each_row(values, *x, out, |_, x, out| rms_norm::scalar(x, vector, *eps, out));
        }
        Op::LayerNorm { x, eps, width, .. } => each_row(values, *x, out, |_, x, out| {
            layer_norm::scalar_groups(x, [vector, bias], (*eps, *width), out);
        }),
        Op::MatMul { x, weight, .. } => {
            let ([x], [out]) = values.borrow([*x], [out]);
            matmul(weight, x, vector, &mut scratch.row, out);
        }
        Op::Rope { x, rope } => in_place(values, *x, out, |row, out| {
            let (cos, sin) = memory.angles.row(i, row);
            rope::scalar(out, rope.head_dim, rope.style, cos, sin);
        }),
        Op::PositionScale { x, beta, original_context } => each_row(values, *x, out, |row, x, out| {
            scale::scalar(x, scale::at_position(*beta, *original_context, batch.positions[row]), out);
        }),
        Op::KvWrite { k, v, layer } => write_kv(memory, batch, *k, *v, *layer),
        Op::Attention { q, attention } => attend(memory, scratch, batch, *q, attention, out),
        Op::Add { a, b } => each_pair(values, *a, *b, out, add::scalar),
        Op::Scale { x, factor } => each_row(values, *x, out, |_, x, out| scale::scalar(x, *factor, out)),
        Op::Softcap { x, cap } => in_place(values, *x, out, |_, out| softcap::scalar(out, *cap)),
        Op::Hadamard { x, width } => in_place(values, *x, out, |_, out| hadamard::scalar(out, *width)),
        Op::Clamp { x, low, high } => in_place(values, *x, out, |_, out| clamp::scalar(out, *low, *high)),
        Op::Activate { x, act } => in_place(values, *x, out, |_, out| activate::scalar(out, *act)),
        Op::Glu { gate, up, act } => {
            each_pair(values, *gate, *up, out, |gate, up, out| glu::scalar(gate, up, *act, out));
        }
        Op::RowGate { gate, x } => {
            each_pair(values, *gate, *x, out, |gate, x, out| scale::scalar(x, scale::of_gate(gate[0]), out));
        }
        Op::ScaleColumns { .. }
        | Op::Columns { .. }
        | Op::JoinColumns { .. }
        | Op::Mix { .. }
        | Op::MatchRms { .. }
        | Op::GaussianTopK { .. }
        | Op::RouteAll { .. } => on_columns(values, &node.op, out),
        Op::MoeRoute { logits, routing } => {
            each_row(values, *logits, out, |_, logits, out| moe_route::scalar(logits, routing, out));
        }
        Op::ExpertMatMul { x, route, experts } => each_pair(values, *x, *route, out, |x, route, out| {
            scratch.row.resize(experts.weights[0].n_cols(), 0.0);
            expert_matmul::scalar(x, route, experts, vector, &mut scratch.row, out);
        }),
        Op::ExpertSum { x, route } => each_pair(values, *x, *route, out, expert_sum::scalar),
        Op::ShortConv { .. } | Op::DeltaNet { .. } | Op::Ssm { .. } => {
            recurrent::run(memory, batch, &node.op, out);
        }
        Op::OutputRows { x } => {
            let width = values.width(out);
            let ([x], [out]) = values.borrow([*x], [out]);
            output_rows::scalar(x, width, batch.outputs, out);
        }
        Op::MergeRows { x, n, merge } => merge_rows(values, batch, *x, (*n, *merge), out),
        Op::Copy { .. } => unreachable!("the executor copies between devices"),
    }
}

/// Runs an operation that selects, joins, scales or mixes columns, or makes them.
fn on_columns(values: &mut ValueArena, op: &Op, out: ValueId) {
    match op {
        Op::ScaleColumns { x, factors } => {
            each_row(values, *x, out, |_, x, out| scale::columns(x, factors, out));
        }
        Op::Columns { x, columns } => {
            each_row(values, *x, out, |_, x, out| columns::scalar(x, *columns, out));
        }
        Op::JoinColumns { a, b, n_groups } => {
            each_pair(values, *a, *b, out, |a, b, out| join_columns::scalar(a, b, *n_groups, out));
        }
        Op::Mix { base, x, factors, width } => mixed(values, [*base, *x], factors, *width, out),
        Op::MatchRms { x, of, least } => {
            each_pair(values, *x, *of, out, |x, of, out| match_rms::scalar(x, of, *least, out));
        }
        Op::GaussianTopK { x, deviations } => {
            each_row(values, *x, out, |_, x, out| gaussian_top_k::scalar(x, *deviations, out));
        }
        Op::RouteAll { n } => {
            let ([], [out]) = values.borrow([], [out]);
            out.chunks_exact_mut(2 * n).for_each(route_all::scalar);
        }
        _ => unreachable!("the caller passes operations on columns"),
    }
}

fn mixed(values: &mut ValueArena, [base, x]: [ValueId; 2], factors: &MixFactors, width: usize, out: ValueId) {
    match factors {
        MixFactors::Same(factors) => {
            each_pair(values, base, x, out, |base, x, out| mix::scalar(base, x, factors, width, out));
        }
        MixFactors::OfRow(factors) => {
            let [n_x, n_factors, n_out] = [x, *factors, out].map(|value| values.width(value));
            let ([base, x, factors], [out]) = values.borrow([base, x, *factors], [out]);
            let rows = x.chunks_exact(n_x).zip(factors.chunks_exact(n_factors));
            let sums = base.chunks_exact(n_out).zip(out.chunks_exact_mut(n_out));
            for ((x, factors), (base, out)) in rows.zip(sums) {
                mix::scalar(base, x, factors, width, out);
            }
        }
    }
}

/// `f(row, x, out)` for each row.
fn each_row(values: &mut ValueArena, x: ValueId, out: ValueId, mut f: impl FnMut(usize, &[f32], &mut [f32])) {
    let (n_in, n_out) = (values.width(x), values.width(out));
    let ([x], [out]) = values.borrow([x], [out]);
    for (row, (x, out)) in x.chunks_exact(n_in).zip(out.chunks_exact_mut(n_out)).enumerate() {
        f(row, x, out);
    }
}

/// `f(row, out)` for each row, with `x` copied into it.
fn in_place(values: &mut ValueArena, x: ValueId, out: ValueId, mut f: impl FnMut(usize, &mut [f32])) {
    each_row(values, x, out, |row, x, out| {
        out.copy_from_slice(x);
        f(row, out);
    });
}

/// `f(a, b, out)` for each row.
fn each_pair(
    values: &mut ValueArena,
    a: ValueId,
    b: ValueId,
    out: ValueId,
    mut f: impl FnMut(&[f32], &[f32], &mut [f32]),
) {
    let (n_a, n_b, n_out) = (values.width(a), values.width(b), values.width(out));
    let ([a, b], [out]) = values.borrow([a, b], [out]);
    for ((a, b), out) in a.chunks_exact(n_a).zip(b.chunks_exact(n_b)).zip(out.chunks_exact_mut(n_out)) {
        f(a, b, out);
    }
}

/// Rows of a table, times `scale`.
fn look_up(values: &mut ValueArena, batch: &Batch, (table, by): (&Tensor, Lookup), scale: f32, out: ValueId) {
    let ([], [out]) = values.borrow([], [out]);
    for (out, row) in out.chunks_exact_mut(table.n_cols()).zip(0..batch.n_rows()) {
        embed::scalar(table, embed::row_of(by, batch, row, table.n_rows()), scale, out);
    }
}

/// Columns of the batch's given rows; zero for other rows.
fn given(values: &mut ValueArena, batch: &Batch, start: usize, out: ValueId) {
    let width = values.width(out);
    let ([], [out]) = values.borrow([], [out]);
    for (row, out) in out.chunks_exact_mut(width).enumerate() {
        out.fill(0.0);
        ops::given::scalar(batch, row, start, out);
    }
}

/// x, except for the rows that the batch gives.
fn replace_given(values: &mut ValueArena, batch: &Batch, x: ValueId, start: usize, out: ValueId) {
    in_place(values, x, out, |row, out| ops::given::scalar(batch, row, start, out));
}

/// Each output row and those after it, merged.
fn merge_rows(values: &mut ValueArena, batch: &Batch, x: ValueId, merge: (usize, RowMerge), out: ValueId) {
    let width = values.width(x);
    let ([x], [out]) = values.borrow([x], [out]);
    ops::merge_rows::scalar(x, width, merge, batch.outputs, out);
}

/// x · weightᵀ + bias; `bias` may be empty.
fn matmul(weight: &Tensor, x: &[f32], bias: &[f32], row: &mut Vec<f32>, out: &mut [f32]) {
    row.resize(weight.n_cols(), 0.0);
    generic::scalar(weight, x, row, out);
    for out in out.chunks_exact_mut(weight.n_rows()) {
        out.iter_mut().zip(bias).for_each(|(out, bias)| *out += bias);
    }
}

fn write_kv(memory: &mut HostMemory, batch: &Batch, k: ValueId, v: ValueId, layer: usize) {
    let layout = memory.kv.layout(layer);
    let halves = kv_write::F16_CONVERT.at(IsaLevel::Portable);
    let ([k, v], []) = memory.values.borrow([k, v], []);
    let width = layout.n_kv_heads * layout.head_dim;
    for row in 0..batch.n_rows() {
        let (page, slot) = batch.slot(layout.retention(), row);
        for head in 0..layout.n_kv_heads {
            let at = row * width + head * layout.head_dim;
            let head_at = at..at + layout.head_dim;
            memory.kv.write(halves, layer, page, slot, head, &k[head_at.clone()], &v[head_at]);
        }
    }
}

fn attend(
    memory: &mut HostMemory,
    scratch: &mut ScalarScratch,
    batch: &Batch,
    q: ValueId,
    attention: &AttentionShape,
    out: ValueId,
) {
    let d = attention.head_dim;
    let group = attention.n_heads / attention.n_kv_heads;
    let ([q], [out]) = memory.values.borrow([q], [out]);
    let ends = batch.ends_for(attention.mask);
    for row in 0..batch.n_rows() {
        let end = ends.get(row).copied().unwrap_or_default();
        let seen = attention::visible(attention, batch.positions[row] as usize, end);
        for kv_head in 0..attention.n_kv_heads {
            gather(&memory.kv, scratch, batch, row, (attention, &seen), kv_head);
            let (keys, values) = (&scratch.keys[seen.start * d..], &scratch.values[seen.start * d..]);
            scratch.scores.resize(seen.len(), 0.0);
            for head in kv_head * group..(kv_head + 1) * group {
                let at = (row * attention.n_heads + head) * d;
                let (q, out) = (&q[at..at + d], &mut out[at..at + d]);
                let scoring = attention::Scoring::of(attention, head);
                attention::scalar(q, keys, values, scoring, &mut scratch.scores, out);
            }
        }
    }
}

/// Decodes the visible keys and values of one head from their pages: (end of the visible range, head_dim). Earlier rows
/// are left unchanged.
fn gather(
    kv: &crate::cpu::kv::KvStore,
    scratch: &mut ScalarScratch,
    batch: &Batch,
    row: usize,
    (attention, seen): (&AttentionShape, &Range<usize>),
    kv_head: usize,
) {
    let (layer, d) = (attention.layer, attention.head_dim);
    let halves = kv_write::F16_CONVERT.at(IsaLevel::Portable);
    let layout = kv.layout(layer);
    let n_pages = seen.end.div_ceil(PAGE_LEN);
    let table = batch.table(layout.retention(), row);
    scratch.keys.resize(n_pages * PAGE_LEN * d, 0.0);
    scratch.values.resize(n_pages * PAGE_LEN * d, 0.0);
    scratch.page.resize(PAGE_LEN * d, 0.0);
    for (i, page) in table[..n_pages].iter().enumerate().skip(seen.start / PAGE_LEN) {
        let span = i * PAGE_LEN * d..(i + 1) * PAGE_LEN * d;
        let precision = kv.layout_of(layer, *page).precision;
        kv_write::load_values(
            halves,
            precision.values,
            kv.values(layer, *page, kv_head),
            d,
            &mut scratch.values[span.clone()],
        );
        kv_write::load_keys(halves, precision.keys, kv.keys(layer, *page, kv_head), d, &mut scratch.page);
        for (slot, key) in scratch.keys[span].chunks_exact_mut(d).enumerate() {
            for (j, key) in key.iter_mut().enumerate() {
                *key = scratch.page[j * PAGE_LEN + slot];
            }
        }
    }
}
