//! The specification as a backend: every node by itself, one thread, f32 activations, weights decoded row by row.
//! Written to be read; `Cpu` is tested against it.

use std::ops::Range;
use std::sync::Arc;

use weights::TensorView;

use crate::backend::{Backend, BackendKind, Observer, Retain};
use crate::cpu::isa::IsaLevel;
use crate::cpu::memory::Memory;
use crate::error::KernelError;
use crate::graph::{AttentionShape, DeviceId, Graph, Op, PAGE_LEN, ValueId};
use crate::matmul::generic;
use crate::ops::{add, attention, embed, glu, kv_write, output_rows, rms_norm, rope};
use crate::plan::fuse::Fusion;
use crate::plan::{Batch, Capacity};
use crate::tensor::Tensor;

/// One thread in plain Rust.
#[derive(Default)]
pub struct Scalar {
    memory: Option<Memory>,
    scratch: Scratch,
}

/// Grows to what the longest row and context need, then stays.
#[derive(Default)]
struct Scratch {
    row: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
    scores: Vec<f32>,
    page: Vec<f32>,
}

impl Scalar {
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
        retain: Retain,
    ) -> Result<(), KernelError> {
        self.memory = Some(Memory::new(graph, device, capacity, retain, Fusion::None)?);
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
            node(memory, &mut self.scratch, i, batch);
            if let Some(observe) = &mut observer {
                observe(&memory.graph.nodes()[i].name);
            }
        }
        Ok(())
    }

    fn read(&self, value: ValueId, n_rows: usize) -> &[f32] {
        memory_ref(&self.memory).values.read(value, n_rows)
    }

    fn write(&mut self, value: ValueId, data: &[f32]) {
        memory_mut(&mut self.memory).values.write(value, data);
    }

    fn kv_page(&self, layer: usize, page: u32) -> &[u8] {
        memory_ref(&self.memory).kv.page(layer, page)
    }

    fn kv_page_mut(&mut self, layer: usize, page: u32) -> &mut [u8] {
        memory_mut(&mut self.memory).kv.page_mut(layer, page)
    }

    fn kv_copy_page(&mut self, from: u32, to: u32) {
        memory_mut(&mut self.memory).kv.copy_page(from, to);
    }
}

fn memory_mut(memory: &mut Option<Memory>) -> &mut Memory {
    memory.as_mut().expect("the executor prepares a backend before it runs it")
}

fn memory_ref(memory: &Option<Memory>) -> &Memory {
    memory.as_ref().expect("the executor prepares a backend before it reads from it")
}

/// One node over all rows of the batch.
fn node(memory: &mut Memory, scratch: &mut Scratch, i: usize, batch: &Batch) {
    let graph = memory.graph.clone();
    let node = &graph.nodes()[i];
    let values = &mut memory.values;
    let vector = &memory.vectors[i];
    let out = node.output.unwrap_or(graph.output());
    let width = graph.value(out).width;
    match &node.op {
        Op::Embed { table, scale } => {
            let ([], [out]) = values.borrow([], [out]);
            for (out, token) in out.chunks_exact_mut(width).zip(batch.tokens) {
                embed::scalar(table, *token, *scale, out);
            }
        }
        Op::RmsNorm { x, eps, .. } => {
            let ([x], [out]) = values.borrow([*x], [out]);
            for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
                rms_norm::scalar(x, vector, *eps, out);
            }
        }
        Op::MatMul { x, weight, bias } => {
            let ([x], [out]) = values.borrow([*x], [out]);
            scratch.row.resize(weight.n_cols(), 0.0);
            generic::scalar(weight, x, &mut scratch.row, out);
            if bias.is_some() {
                for out in out.chunks_exact_mut(width) {
                    out.iter_mut().zip(vector).for_each(|(out, bias)| *out += bias);
                }
            }
        }
        Op::Rope { x, rope } => {
            let ([x], [out]) = values.borrow([*x], [out]);
            out.copy_from_slice(x);
            for (row, out) in out.chunks_exact_mut(width).enumerate() {
                let (cos, sin) = memory.angles.row(i, row);
                rope::scalar(out, rope.head_dim, rope.style, cos, sin);
            }
        }
        Op::KvWrite { k, v, layer } => write_kv(memory, batch, *k, *v, *layer),
        Op::Attention { q, attention } => attend(memory, scratch, batch, *q, attention, out),
        Op::Add { a, b } => {
            let ([a, b], [out]) = values.borrow([*a, *b], [out]);
            add::scalar(a, b, out);
        }
        Op::Glu { gate, up, act } => {
            let ([gate, up], [out]) = values.borrow([*gate, *up], [out]);
            glu::scalar(gate, up, *act, out);
        }
        Op::OutputRows { x } => {
            let ([x], [out]) = values.borrow([*x], [out]);
            output_rows::scalar(x, width, batch.outputs, out);
        }
        Op::Copy { .. } => unreachable!("the executor copies between devices"),
    }
}

fn write_kv(memory: &mut Memory, batch: &Batch, k: ValueId, v: ValueId, layer: usize) {
    let layout = memory.kv.layout(layer);
    let halves = kv_write::HALVES.at(IsaLevel::Portable);
    let ([k, v], []) = memory.values.borrow([k, v], []);
    let width = layout.n_kv_heads * layout.head_dim;
    for row in 0..batch.n_rows() {
        let (page, slot) = batch.slot(row);
        for head in 0..layout.n_kv_heads {
            let at = row * width + head * layout.head_dim;
            let head_at = at..at + layout.head_dim;
            memory.kv.write(halves, layer, page, slot, head, &k[head_at.clone()], &v[head_at]);
        }
    }
}

fn attend(
    memory: &mut Memory,
    scratch: &mut Scratch,
    batch: &Batch,
    q: ValueId,
    attention: &AttentionShape,
    out: ValueId,
) {
    let d = attention.head_dim;
    let group = attention.n_heads / attention.n_kv_heads;
    let ([q], [out]) = memory.values.borrow([q], [out]);
    for row in 0..batch.n_rows() {
        let seen = attention::visible(attention, batch.positions[row] as usize);
        for kv_head in 0..attention.n_kv_heads {
            gather(&memory.kv, scratch, batch, row, attention.layer, kv_head, d);
            let (keys, values) = (&scratch.keys[seen.start * d..], &scratch.values[seen.start * d..]);
            scratch.scores.resize(seen.len(), 0.0);
            for head in kv_head * group..(kv_head + 1) * group {
                let at = (row * attention.n_heads + head) * d;
                let (q, out) = (&q[at..at + d], &mut out[at..at + d]);
                attention::scalar(q, keys, values, attention.scale, &mut scratch.scores, out);
            }
        }
    }
}

/// Keys and values of positions 0..=position of one head, out of their pages: (position + 1, head_dim)
fn gather(
    kv: &crate::cpu::kv::KvStore,
    scratch: &mut Scratch,
    batch: &Batch,
    row: usize,
    layer: usize,
    kv_head: usize,
    d: usize,
) {
    let halves = kv_write::HALVES.at(IsaLevel::Portable);
    let dtype = kv.layout(layer).dtype;
    let n_pages = batch.positions[row] as usize / PAGE_LEN + 1;
    let table = batch.page_tables[batch.sequence[row] as usize];
    scratch.keys.resize(n_pages * PAGE_LEN * d, 0.0);
    scratch.values.resize(n_pages * PAGE_LEN * d, 0.0);
    scratch.page.resize(PAGE_LEN * d, 0.0);
    for (i, page) in table[..n_pages].iter().enumerate() {
        let span = i * PAGE_LEN * d..(i + 1) * PAGE_LEN * d;
        kv_write::load_values(
            halves,
            dtype,
            kv.values(layer, *page, kv_head),
            d,
            &mut scratch.values[span.clone()],
        );
        kv_write::load_keys(halves, dtype, kv.keys(layer, *page, kv_head), d, &mut scratch.page);
        for (slot, key) in scratch.keys[span].chunks_exact_mut(d).enumerate() {
            for (j, key) in key.iter_mut().enumerate() {
                *key = scratch.page[j * PAGE_LEN + slot];
            }
        }
    }
}
