//! What a step of a plan was, for whoever holds a clock: its name, the bytes it had to read and write, and its
//! arithmetic. Knows nothing of time.

use std::time::Duration;

use crate::graph::{AttentionShape, Experts, Graph, Node, Op, PAGE_LEN, ValueId};
use crate::ops;
use crate::ops::attention::visible;
use crate::plan::Batch;
use crate::plan::fuse::Step;
use crate::tensor::Tensor;

/// Called after each step; a caller with a clock makes a profile of it.
pub type Observer<'a> = &'a mut dyn FnMut(&Ran);

/// A step that has just run.
#[derive(Clone, Copy)]
pub struct Ran<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) batch: &'a Batch<'a>,
    pub(crate) step: &'a Step,
    pub(crate) values: &'a dyn Readable,
    /// where the device has a clock of its own
    pub(crate) span: Option<Span>,
}

/// When a device ran a step, since its first one of the same run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: Duration,
    pub end: Duration,
}

/// Values of a device that are in main memory.
pub(crate) trait Readable {
    /// The first `n_rows` rows.
    fn read(&self, value: ValueId, n_rows: usize) -> &[f32];
}

/// What a step costs at least, whatever runs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Weights, keys and values once each; activations only of steps that have nothing else. Of experts as many as
    /// the rows may choose.
    pub bytes: u64,
    /// Of products and attention, two for each multiply-add; other steps count for nothing.
    pub ops: u64,
}

impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, ops: self.ops + other.ops }
    }
}

impl Ran<'_> {
    /// "layers.3.ffn.down": the node that finished the step.
    pub fn name(&self) -> &str {
        &self.graph.nodes()[self.step.last()].name
    }

    /// "matmul": the operation that the step is for.
    pub fn operation(&self) -> &'static str {
        ops::row(&self.graph.nodes()[self.step.first()].op).name
    }

    /// "attention.q+k+v Q4_K+Q6_K 2048→3072": the same for steps of all layers that do the same.
    pub fn what(&self) -> String {
        let nodes = self.nodes();
        let parts: Vec<&str> = nodes.iter().map(|node| part(&node.name)).collect();
        let (room, mut what) =
            parts[0].split_once('.').map_or(("", String::new()), |(room, _)| (room, format!("{room}.")));
        for (i, part) in parts.iter().enumerate() {
            let short = part.split_once('.').filter(|(of, _)| *of == room).map_or(*part, |(_, short)| short);
            what.push_str(if i == 0 { "" } else { "+" });
            what.push_str(short);
        }
        let weights: Vec<&Tensor> = nodes.iter().filter_map(|node| weight(node)).collect();
        if let Some(first) = weights.first() {
            let mut dtypes: Vec<&str> = weights.iter().map(|weight| weight.dtype().name()).collect();
            dtypes.dedup();
            let n_out: usize = weights.iter().map(|weight| weight.n_rows()).sum();
            what.push_str(&format!(" {} {}→{n_out}", dtypes.join("+"), first.n_cols()));
        }
        what
    }

    /// What an attention was, the queries it was given (rows, n_heads, head_dim), and the batch they are of. None: the
    /// step was none, or is long over.
    pub fn queries(&self) -> Option<(&AttentionShape, &[f32], &Batch<'_>)> {
        let Step::Node(i) = self.step else { return None };
        match &self.graph.nodes()[*i].op {
            Op::Attention { q, attention } if self.span.is_none() => {
                Some((attention, self.values.read(*q, self.batch.n_rows()), self.batch))
            }
            _ => None,
        }
    }

    /// When it ran, where the device has a clock of its own and was asked for it: then the step is told of after its
    /// whole run. None: it ran just now.
    pub fn span(&self) -> Option<Span> {
        self.span
    }

    pub fn cost(&self) -> Cost {
        match self.step {
            Step::Node(i) => self.node(&self.graph.nodes()[*i]),
            Step::AddNorm { .. } | Step::Rotate { .. } => {
                self.nodes().into_iter().map(|node| self.node(node)).fold(Cost::default(), |a, b| a + b)
            }
            // a gated unit finds its inputs in cache
            Step::MatMuls { nodes, .. } | Step::Experts { nodes, .. } => {
                let costs = nodes.iter().map(|i| self.node(&self.graph.nodes()[*i]));
                costs.fold(Cost::default(), |a, b| a + b)
            }
        }
    }

    fn nodes(&self) -> Vec<&Node> {
        self.step.nodes().into_iter().map(|i| &self.graph.nodes()[i]).collect()
    }

    fn node(&self, node: &Node) -> Cost {
        let n_rows = |value: ValueId| self.batch.rows(self.graph.value(value).rows) as u64;
        let only_bytes = |bytes| Cost { bytes, ops: 0 };
        match &node.op {
            Op::MatMul { x, weight, .. } => Cost {
                bytes: weight.bytes().len() as u64,
                ops: 2 * (weight.n_rows() * weight.n_cols()) as u64 * n_rows(*x),
            },
            Op::ExpertMatMul { route, experts, .. } => {
                // the route is numbers of experts, then their weights
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
            Op::RmsNorm { .. }
            | Op::LayerNorm { .. }
            | Op::Rope { .. }
            | Op::PositionScale { .. }
            | Op::Add { .. }
            | Op::Scale { .. }
            | Op::Softcap { .. }
            | Op::Activate { .. }
            | Op::Glu { .. }
            | Op::RowGate { .. }
            | Op::Columns { .. }
            | Op::MoeRoute { .. }
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

    /// Keys and values that any row of a sequence sees are read once for all its rows.
    fn attention(&self, shape: &AttentionShape) -> Cost {
        let layout = self.graph.kv().layers[shape.layer];
        let per_position = (layout.page_bytes() / PAGE_LEN) as u64;
        let per_pair = 4 * (shape.n_heads * shape.head_dim) as u64;
        let ends = self.batch.ends();
        let seen = |row: usize| visible(shape, self.batch.positions[row] as usize, ends[row]);
        let mut cost = Cost::default();
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

    /// Bytes of the states of one recurrent layer, read and written.
    fn state(&self, state: usize) -> u64 {
        (2 * self.graph.kv().states[state] * size_of::<f32>() * self.batch.states.len()) as u64
    }
}

fn expert_cost(experts: &Experts, n_pairs: u64) -> Cost {
    let one = &experts.weights[0];
    let n_read = n_pairs.min(experts.weights.len() as u64);
    Cost { bytes: n_read * one.bytes().len() as u64, ops: 2 * (one.n_rows() * one.n_cols()) as u64 * n_pairs }
}

/// "ffn.down" of "layers.3.ffn.down".
fn part(name: &str) -> &str {
    let inside = name.strip_prefix("layers.").and_then(|rest| rest.split_once('.'));
    inside.map_or(name, |(_, part)| part)
}

/// The matrix of a product: of experts the first.
fn weight(node: &Node) -> Option<&Tensor> {
    match &node.op {
        Op::MatMul { weight, .. } => Some(weight),
        Op::ExpertMatMul { experts, .. } => experts.weights.first(),
        _ => None,
    }
}
