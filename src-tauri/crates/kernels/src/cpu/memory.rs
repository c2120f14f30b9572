//! The memory of a CPU backend for its part of a graph: value arena, KV pages, recurrent states, decoded
//! vectors, RoPE tables.
//! Shared by `Scalar` and `Cpu`, which differ in how they compute.

use std::ops::Range;
use std::sync::Arc;

use super::arena::{self, AlignedVec};
use super::kv::KvStore;
use super::states::StateStore;
use crate::batch::Batch;
use crate::capacity::Capacity;
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, Op, RopeShape, ValueId};
use crate::ops::{rope, short_conv};
use crate::plan::fuse::{Fusion, steps};
use crate::plan::layout::{ArenaLayout, ValueLifetime, bucket, buckets, lay_out};
use crate::plan::segments::runs_of;
use crate::plan::step::Step;
use crate::profile::ReadValue;

/// Memory of one device for one graph.
pub struct HostMemory {
    /// The graph.
    pub graph: Arc<Graph>,
    /// Values of the current batch.
    pub values: ValueArena,
    /// Keys and values.
    pub kv: KvStore,
    /// Recurrent states.
    pub states: StateStore,
    /// For each node its decoded norm weight (with offset), bias or taps; empty if it has none.
    pub vectors: Vec<Vec<f32>>,
    /// For each node the additional bias of layer norms and convolutions; otherwise empty.
    pub biases: Vec<Vec<f32>>,
    /// Sines and cosines of positions.
    pub angles: RopeAngleTables,
    fusion: Fusion,
    programs: Vec<(Range<usize>, Arc<[Step]>)>,
}

impl HostMemory {
    /// Allocates memory for the nodes of `graph` on `device`, and plans every row bucket.
    pub fn new(
        graph: &Arc<Graph>,
        device: DeviceId,
        capacity: Capacity,
        lifetime: ValueLifetime,
        fusion: Fusion,
    ) -> Result<Self, KernelError> {
        let programs: Vec<(Range<usize>, Arc<[Step]>)> =
            runs_of(graph, device).map(|nodes| (nodes.clone(), steps(graph, nodes, fusion).into())).collect();
        let all: Vec<Step> = programs.iter().flat_map(|(_, steps)| steps.iter().cloned()).collect();
        let on_device = || graph.nodes().iter().map(|node| (&node.op, node.device == device));
        Ok(Self {
            graph: graph.clone(),
            values: ValueArena::new(graph, device, &all, capacity, lifetime)?,
            kv: KvStore::new(graph, device, &capacity)?,
            states: StateStore::new(graph, device, capacity.n_states)?,
            vectors: on_device()
                .map(|(op, on_device)| if on_device { decode_vector(op) } else { Vec::new() })
                .collect(),
            biases: on_device()
                .map(|(op, on_device)| if on_device { decode_bias(op) } else { Vec::new() })
                .collect(),
            angles: RopeAngleTables::new(graph, device, capacity.max_rows),
            fusion,
            programs,
        })
    }

    /// Selects the layout for this batch and fills the tables that depend on positions.
    pub fn begin(&mut self, batch: &Batch) {
        self.values.begin(batch);
        self.angles.begin(batch);
    }

    /// Returns the steps of a range of nodes, planned on first use.
    pub fn program(&mut self, nodes: Range<usize>) -> Arc<[Step]> {
        if let Some((_, steps)) = self.programs.iter().find(|(range, _)| *range == nodes) {
            return steps.clone();
        }
        let steps: Arc<[Step]> = steps(&self.graph, nodes.clone(), self.fusion).into();
        self.programs.push((nodes, steps.clone()));
        steps
    }
}

fn decode_vector(op: &Op) -> Vec<f32> {
    match op {
        Op::RmsNorm { weight, offset, width, .. } => match weight {
            Some(weight) => weight.decode().iter().map(|w| w + offset).collect(),
            None => vec![1.0; *width],
        },
        Op::LayerNorm { weight, .. } => weight.decode(),
        Op::MatMul { bias: Some(bias), .. } => bias.decode(),
        Op::ExpertMatMul { experts, .. } => experts.bias.as_ref().map_or(Vec::new(), |bias| bias.decode()),
        Op::ShortConv { conv, .. } => short_conv::by_tap(conv),
        _ => Vec::new(),
    }
}

fn decode_bias(op: &Op) -> Vec<f32> {
    match op {
        Op::LayerNorm { weight, bias, .. } => match bias {
            Some(bias) => bias.decode(),
            None => vec![0.0; weight.n_cols()],
        },
        Op::ShortConv { conv, .. } => match &conv.bias {
            Some(bias) => bias.to_vec(),
            None => vec![0.0; conv.weight.len() / conv.kernel],
        },
        _ => Vec::new(),
    }
}

/// The values of one device in one arena.
pub struct ValueArena {
    graph: Arc<Graph>,
    capacity: Capacity,
    /// By row bucket: 1, 2, 4 …
    layouts: Vec<ArenaLayout>,
    layout: usize,
    arena: AlignedVec<f32>,
    n_tokens: usize,
    n_outputs: usize,
}

impl ValueArena {
    fn new(
        graph: &Arc<Graph>,
        device: DeviceId,
        steps: &[Step],
        capacity: Capacity,
        lifetime: ValueLifetime,
    ) -> Result<Self, KernelError> {
        let layouts: Vec<ArenaLayout> = buckets(capacity.max_rows)
            .map(|rows| lay_out(graph, device, steps, rows, &capacity, lifetime))
            .collect();
        let len = layouts.iter().map(|l| l.len).max().unwrap_or(0);
        let arena = AlignedVec::zeroed(len, "activations")?;
        Ok(Self { graph: graph.clone(), capacity, layouts, layout: 0, arena, n_tokens: 0, n_outputs: 0 })
    }

    fn begin(&mut self, batch: &Batch) {
        let rows = bucket(batch.n_rows(), self.capacity.max_rows);
        let at = buckets(self.capacity.max_rows).position(|b| b == rows);
        self.layout = at.expect("`bucket` returns one of `buckets`");
        self.n_tokens = batch.n_rows();
        self.n_outputs = batch.outputs.len();
    }

    /// Returns the rows that `value` has in the current batch.
    pub fn n_rows(&self, value: ValueId) -> usize {
        match self.graph.value(value).rows {
            crate::graph::Rows::Tokens => self.n_tokens,
            crate::graph::Rows::Outputs => self.n_outputs,
        }
    }

    /// Returns the floats in a row of `value`.
    pub fn width(&self, value: ValueId) -> usize {
        self.graph.value(value).width
    }

    /// Returns where `value` is stored in the arena: (n_rows, width).
    pub fn span(&self, value: ValueId) -> Range<usize> {
        self.layouts[self.layout].span(&self.graph, value, self.n_rows(value))
    }

    /// Borrows values to read and values to write together. Panics if a written one shares memory with
    /// another.
    pub fn borrow<const R: usize, const W: usize>(
        &mut self,
        reads: [ValueId; R],
        writes: [ValueId; W],
    ) -> ([&[f32]; R], [&mut [f32]; W]) {
        let (reads, writes) = (reads.map(|v| self.span(v)), writes.map(|v| self.span(v)));
        arena::borrow(&mut self.arena, reads, writes)
    }

    /// Borrows the whole arena, for workers that divide it among themselves.
    pub fn arena(&mut self) -> &mut [f32] {
        &mut self.arena
    }

    /// Borrows the first `n_rows` rows of `value`.
    pub fn read(&self, value: ValueId, n_rows: usize) -> &[f32] {
        &self.arena[self.layouts[self.layout].span(&self.graph, value, n_rows)]
    }

    /// Sets as many rows of `value` as `data` has.
    pub fn write(&mut self, value: ValueId, data: &[f32]) {
        let n_rows = data.len() / self.graph.value(value).width;
        let span = self.layouts[self.layout].span(&self.graph, value, n_rows);
        self.arena[span].copy_from_slice(data);
    }
}

impl ReadValue for ValueArena {
    fn read(&self, value: ValueId, n_rows: usize) -> &[f32] {
        Self::read(self, value, n_rows)
    }
}

/// Sines and cosines for the batch's positions: one table for each distinct rotation in the graph.
pub struct RopeAngleTables {
    tables: Vec<RopeAngleTable>,
    /// For each node its table; unused if it rotates nothing.
    table_of: Vec<usize>,
}

struct RopeAngleTable {
    rope: RopeShape,
    /// (max_rows, n_rot / 2)
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl RopeAngleTables {
    fn new(graph: &Graph, device: DeviceId, max_rows: usize) -> Self {
        let mut tables: Vec<RopeAngleTable> = Vec::new();
        let mut table_of = vec![usize::MAX; graph.nodes().len()];
        for (i, node) in graph.nodes().iter().enumerate().filter(|(_, n)| n.device == device) {
            let Op::Rope { rope, .. } = &node.op else { continue };
            let same = |t: &RopeAngleTable| rope.has_angles_of(&t.rope);
            table_of[i] = tables.iter().position(same).unwrap_or_else(|| {
                let len = max_rows * rope.n_rot / 2;
                tables.push(RopeAngleTable { rope: rope.clone(), cos: vec![0.0; len], sin: vec![0.0; len] });
                tables.len() - 1
            });
        }
        Self { tables, table_of }
    }

    fn begin(&mut self, batch: &Batch) {
        for table in &mut self.tables {
            let n = table.rope.n_rot / 2;
            let rows = table.cos.chunks_exact_mut(n).zip(table.sin.chunks_exact_mut(n));
            for ((cos, sin), row) in rows.zip(0..batch.n_rows()) {
                rope::angles(&table.rope, batch.coordinates(row), cos, sin);
            }
        }
    }

    /// Returns cos and sin (n_rot / 2) of one row for a RoPE node.
    pub fn row(&self, node: usize, row: usize) -> (&[f32], &[f32]) {
        let table = &self.tables[self.table_of[node]];
        let n = table.rope.n_rot / 2;
        (&table.cos[row * n..(row + 1) * n], &table.sin[row * n..(row + 1) * n])
    }
}
