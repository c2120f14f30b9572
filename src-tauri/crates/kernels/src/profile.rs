//! Describes the steps of a run for profiling: name, bytes read and written, and arithmetic. Knows nothing of time.

use std::time::Duration;

use crate::batch::Batch;
use crate::graph::{AttentionShape, Experts, Graph, Node, Op, PAGE_LEN, ValueId};
use crate::ops;
use crate::ops::attention::visible;
use crate::plan::step::Step;
use crate::tensor::Tensor;

/// Called after each step of a run; a caller with a clock makes a profile of it.
pub type Observer<'a> = &'a mut dyn FnMut(&StepProfile);

/// A step that has just run.
#[derive(Clone, Copy)]
pub struct StepProfile<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) batch: &'a Batch<'a>,
    pub(crate) step: &'a Step,
    pub(crate) values: &'a dyn ReadValue,
    /// measured by the device's own clock; None: the device has none, or timing is off
    pub(crate) span: Option<TimeSpan>,
}

/// Start and end of a step on the device, since the first step of the same run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeSpan {
    /// start of the step
    pub start: Duration,
    /// end of the step
    pub end: Duration,
}

/// Access to values of a device that are in main memory.
pub(crate) trait ReadValue {
    /// The first `n_rows` rows: (n_rows, width)
    fn read(&self, value: ValueId, n_rows: usize) -> &[f32];
}

/// Minimum cost of a step, independent of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCost {
    /// Bytes of weights, keys and values, each counted once; activations only for steps that read nothing else.
    /// Of experts as many as the rows may choose.
    pub bytes: u64,
    /// Floating-point operations of matrix multiplications and attention, two per multiply-add; 0 for other steps.
    pub ops: u64,
}

impl std::ops::Add for StepCost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, ops: self.ops + other.ops }
    }
}

impl StepProfile<'_> {
    /// Name of the node that completed the step: "layers.3.ffn.down".
    pub fn name(&self) -> &str {
        &self.graph.nodes()[self.step.last()].name
    }

    /// Name of the step's main operation: "matmul".
    pub fn operation(&self) -> &'static str {
        ops::row(&self.graph.nodes()[self.step.first()].op).name
    }

    /// Label shared by the equivalent steps of all layers: "attention.q+k+v Q4_K+Q6_K 2048→3072".
    pub fn label(&self) -> String {
        let nodes = self.nodes();
        let parts: Vec<&str> = nodes.iter().map(|node| part(&node.name)).collect();
        let (module, mut label) = parts[0]
            .split_once('.')
            .map_or(("", String::new()), |(module, _)| (module, format!("{module}.")));
        for (i, part) in parts.iter().enumerate() {
            let short =
                part.split_once('.').filter(|(of, _)| *of == module).map_or(*part, |(_, short)| short);
            label.push_str(if i == 0 { "" } else { "+" });
            label.push_str(short);
        }
        let weights: Vec<&Tensor> = nodes.iter().filter_map(|node| weight(node)).collect();
        if let Some(first) = weights.first() {
            let mut dtypes: Vec<&str> = weights.iter().map(|weight| weight.dtype().name()).collect();
            dtypes.dedup();
            let n_out: usize = weights.iter().map(|weight| weight.n_rows()).sum();
            label.push_str(&format!(" {} {}→{n_out}", dtypes.join("+"), first.n_cols()));
        }
        label
    }

    /// Shape, queries (rows, n_heads, head_dim) and batch of an attention step. None: another operation, or the step is
    /// reported after the run.
    pub fn queries(&self) -> Option<(&AttentionShape, &[f32], &Batch<'_>)> {
        let Step::Node(i) = self.step else { return None };
        match &self.graph.nodes()[*i].op {
            Op::Attention { q, attention } if self.span.is_none() => {
                Some((attention, self.values.read(*q, self.batch.n_rows()), self.batch))
            }
            _ => None,
        }
    }

    /// Start and end on the device, where its timestamps are on; then steps are reported after the run. None: the step
    /// has just ended.
    pub fn span(&self) -> Option<TimeSpan> {
        self.span
    }

    /// Minimum cost of the step.
    pub fn cost(&self) -> StepCost {
        match self.step {
            Step::Node(i) => self.node(&self.graph.nodes()[*i]),
            Step::AddNorm { .. } | Step::RopeKvWrite { .. } => {
                self.nodes().into_iter().map(|node| self.node(node)).fold(StepCost::default(), |a, b| a + b)
            }
            // a gated unit adds nothing: its inputs are in cache
            Step::MatMuls { nodes, .. } | Step::ExpertMatMuls { nodes, .. } => {
                let costs = nodes.iter().map(|i| self.node(&self.graph.nodes()[*i]));
                costs.fold(StepCost::default(), |a, b| a + b)
            }
        }
    }

    fn nodes(&self) -> Vec<&Node> {
        self.step.nodes().into_iter().map(|i| &self.graph.nodes()[i]).collect()
    }

    fn node(&self, node: &Node) -> StepCost {
        let n_rows = |value: ValueId| self.batch.rows(self.graph.value(value).rows) as u64;
        let only_bytes = |bytes| StepCost { bytes, ops: 0 };
        match &node.op {
            Op::MatMul { x, weight, .. } => StepCost {
                bytes: weight.bytes().len() as u64,
                ops: 2 * (weight.n_rows() * weight.n_cols()) as u64 * n_rows(*x),
            },
            Op::ExpertMatMul { route, experts, .. } => {
                // a route row holds expert indices, then their weights
                let n_used = self.graph.value(*route).width as u64 / 2;
                expert_cost(experts, n_rows(*route) * n_used)
            }
            Op::Attention { attention, .. } => self.attention(attention),
            Op::Embed { table, .. } => only_bytes((table.row_bytes() * self.batch.n_rows()) as u64),
            Op::KvWrite { layer, .. } => only_bytes(
                (self.graph.kv().layers[*layer].page_bytes() / PAGE_LEN * self.batch.n_rows()) as u64,
            ),
            Op::ShortConv { conv, .. } => only_bytes(self.state(conv.state)),
            Op::DeltaNet { delta, .. } => only_bytes(self.state(delta.state)),
            Op::Ssm { ssm, .. } => only_bytes(self.state(ssm.state)),
            Op::Given { .. }
            | Op::ReplaceGiven { .. }
            | Op::MergeRows { .. }
            | Op::RmsNorm { .. }
            | Op::LayerNorm { .. }
            | Op::Rope { .. }
            | Op::PositionScale { .. }
            | Op::Add { .. }
            | Op::Scale { .. }
            | Op::Softcap { .. }
            | Op::Clamp { .. }
            | Op::Hadamard { .. }
            | Op::Activate { .. }
            | Op::Glu { .. }
            | Op::RowGate { .. }
            | Op::ScaleColumns { .. }
            | Op::Columns { .. }
            | Op::JoinColumns { .. }
            | Op::Mix { .. }
            | Op::MatchRms { .. }
            | Op::GaussianTopK { .. }
            | Op::MoeRoute { .. }
            | Op::RouteAll { .. }
            | Op::ExpertSum { .. }
            | Op::OutputRows { .. }
            | Op::Copy { .. } => {
                let mut n_floats = 0;
                let mut count = |value| n_floats += n_rows(value) * self.graph.value(value).width as u64;
                node.op.for_each_input(&mut count);
                node.output.into_iter().for_each(count);
                only_bytes(n_floats * size_of::<f32>() as u64)
            }
        }
    }

    /// Keys and values that any row of a sequence sees count once for all its rows.
    fn attention(&self, shape: &AttentionShape) -> StepCost {
        let layout = self.graph.kv().layers[shape.layer];
        let per_position = (layout.page_bytes() / PAGE_LEN) as u64;
        let per_pair = 4 * (shape.n_heads * shape.head_dim) as u64;
        let ends = self.batch.ends_for(shape.mask);
        let end = |row: usize| ends.get(row).copied().unwrap_or_default();
        let seen = |row: usize| visible(shape, self.batch.positions[row] as usize, end(row));
        let mut cost = StepCost::default();
        for sequence in 0..self.batch.page_tables.len() {
            let rows = (0..self.batch.n_rows()).filter(|row| self.batch.sequence[*row] as usize == sequence);
            let (mut first, mut last) = (usize::MAX, 0);
            for seen in rows.map(seen) {
                (first, last) = (first.min(seen.start), last.max(seen.end));
                cost.ops += per_pair * seen.len() as u64;
            }
            cost.bytes += per_position * last.saturating_sub(first) as u64;
        }
        cost
    }

    /// Bytes of the states of one recurrent layer, read and written once.
    fn state(&self, state: usize) -> u64 {
        (2 * self.graph.kv().states[state] * size_of::<f32>() * self.batch.states.len()) as u64
    }
}

fn expert_cost(experts: &Experts, n_pairs: u64) -> StepCost {
    let one = &experts.weights[0];
    let n_read = n_pairs.min(experts.weights.len() as u64);
    StepCost {
        bytes: n_read * one.bytes().len() as u64,
        ops: 2 * (one.n_rows() * one.n_cols()) as u64 * n_pairs,
    }
}

/// The name within the layer: "ffn.down" of "layers.3.ffn.down".
fn part(name: &str) -> &str {
    let inside = name.strip_prefix("layers.").and_then(|rest| rest.split_once('.'));
    inside.map_or(name, |(_, part)| part)
}

/// The weight matrix of a multiplication; of experts the first.
fn weight(node: &Node) -> Option<&Tensor> {
    match &node.op {
        Op::MatMul { weight, .. } => Some(weight),
        Op::ExpertMatMul { experts, .. } => experts.weights.first(),
        _ => None,
    }
}
