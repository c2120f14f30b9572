//! Which nodes run together. Products of one input share its quantised form and one parallel region; a residual sum
//! and the norm of it share one pass; a gated unit is finished where its two products are still in cache.
//! Every value is still written, so that a fused plan can be compared with an unfused one, but where a card says so.

use std::ops::Range;

use super::rotate::{is_ready, rotation};
use super::sandwich::sandwich;
use crate::backend::Retain;
use crate::graph::{Graph, Node, Op};

/// Most products in one step: q, k, v and room to spare; a fixed number, so that a step needs no allocation.
pub const MAX_PRODUCTS: usize = 8;

/// One thing a device does between two barriers. Numbers are indices into `Graph::nodes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Node(usize),
    /// norm(a + b), with the sum kept; with `before` one of the two is normed first, which nobody sees then
    AddNorm {
        before: Option<usize>,
        add: usize,
        norm: usize,
    },
    /// products of one x; `glu` joins exactly two of them
    MatMuls {
        nodes: Vec<usize>,
        glu: Option<usize>,
    },
    /// keys rotated on their way into the store, and queries of the same rotation beside them; `norms` of the heads of
    /// each come before, whose own values nobody sees then
    Rotate {
        norms: Vec<usize>,
        q: Option<usize>,
        k: usize,
        write: usize,
    },
    /// a product of experts, or two of one x under one route that `glu` joins
    Experts {
        nodes: Vec<usize>,
        glu: Option<usize>,
    },
}

impl Step {
    /// The node that finishes it.
    pub fn last(&self) -> usize {
        match self {
            Self::Node(i) => *i,
            Self::AddNorm { norm, .. } => *norm,
            Self::Rotate { write, .. } => *write,
            Self::MatMuls { nodes, glu } | Self::Experts { nodes, glu } => {
                glu.unwrap_or(nodes[nodes.len() - 1])
            }
        }
    }

    /// The node that it begins with, in graph order.
    pub fn first(&self) -> usize {
        match self {
            Self::Node(i) => *i,
            Self::AddNorm { before, add, .. } => before.unwrap_or(*add),
            Self::Rotate { norms, q, k, .. } => norms.first().copied().or(*q).unwrap_or(*k),
            Self::MatMuls { nodes, .. } | Self::Experts { nodes, .. } => nodes[0],
        }
    }

    /// The nodes of this step, in graph order.
    pub fn nodes(&self) -> Vec<usize> {
        match self {
            Self::Node(i) => vec![*i],
            Self::AddNorm { before, add, norm } => before.iter().copied().chain([*add, *norm]).collect(),
            Self::Rotate { norms, q, k, write } => {
                let mut nodes: Vec<usize> = norms.iter().chain(q).copied().chain([*k, *write]).collect();
                nodes.sort_unstable();
                nodes
            }
            Self::MatMuls { nodes, glu } | Self::Experts { nodes, glu } => {
                nodes.iter().chain(glu).copied().collect()
            }
        }
    }
}

/// Whether a backend wants nodes joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fusion {
    None,
    /// what pays on a CPU
    Full,
    /// what saves a card kernels, besides; where all values stay readable, all are written
    Card(Retain),
}

/// The steps of a stretch of nodes on one device.
pub fn steps(graph: &Graph, range: Range<usize>, fusion: Fusion) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut done = vec![false; range.len()];
    for i in range.clone() {
        if done[i - range.start] {
            continue;
        }
        let step = match fusion {
            Fusion::None => Step::Node(i),
            Fusion::Full => step_at(graph, i, range.end),
            Fusion::Card(retain) => match rotation(graph, i, &range, retain) {
                Some(step) if is_ready(graph, &step, range.start, &done) => step,
                // together with the writing, at last
                Some(_) => continue,
                None => sandwich(graph, i, &range, retain).unwrap_or_else(|| step_at(graph, i, range.end)),
            },
        };
        for node in step.nodes() {
            done[node - range.start] = true;
        }
        steps.push(step);
    }
    steps
}

fn step_at(graph: &Graph, i: usize, end: usize) -> Step {
    let nodes = graph.nodes();
    match &nodes[i].op {
        Op::Add { .. } => match nodes[i + 1..end].first() {
            Some(Node { op: Op::RmsNorm { x, width, .. }, .. })
                if nodes[i].output == Some(*x) && graph.value(*x).width == *width =>
            {
                Step::AddNorm { before: None, add: i, norm: i + 1 }
            }
            _ => Step::Node(i),
        },
        Op::MatMul { x, .. } => {
            let (nodes, glu) =
                joined(graph, i, end, &|op| matches!(op, Op::MatMul { x: other, .. } if other == x));
            Step::MatMuls { nodes, glu }
        }
        Op::ExpertMatMul { x, route, .. } => {
            let same =
                |op: &Op| matches!(op, Op::ExpertMatMul { x: a, route: b, .. } if (a, b) == (x, route));
            match joined(graph, i, end, &same) {
                (nodes, Some(glu)) => Step::Experts { nodes, glu: Some(glu) },
                (_, None) => Step::Experts { nodes: vec![i], glu: None },
            }
        }
        Op::Embed { .. }
        | Op::RmsNorm { .. }
        | Op::LayerNorm { .. }
        | Op::Rope { .. }
        | Op::PositionScale { .. }
        | Op::KvWrite { .. }
        | Op::Attention { .. }
        | Op::Scale { .. }
        | Op::Softcap { .. }
        | Op::Activate { .. }
        | Op::Glu { .. }
        | Op::RowGate { .. }
        | Op::Columns { .. }
        | Op::MoeRoute { .. }
        | Op::ExpertSum { .. }
        | Op::ShortConv { .. }
        | Op::DeltaNet { .. }
        | Op::OutputRows { .. }
        | Op::Copy { .. } => Step::Node(i),
    }
}

/// Every later node that is the `same` too: its input is there already, so it may run now. The values of a product
/// differ from those of the node list in nothing but the time they are written. With them the gated unit that joins
/// them, if they are two.
fn joined(
    graph: &Graph,
    first: usize,
    end: usize,
    same: &dyn Fn(&Op) -> bool,
) -> (Vec<usize>, Option<usize>) {
    let nodes = graph.nodes();
    let group: Vec<usize> = (first..end).filter(|i| same(&nodes[*i].op)).take(MAX_PRODUCTS).collect();
    let joins = |i: &usize| match (&nodes[*i].op, &group[..]) {
        (Op::Glu { gate, up, .. }, [a, b]) => {
            let outputs = [nodes[*a].output, nodes[*b].output];
            gate != up && outputs.contains(&Some(*gate)) && outputs.contains(&Some(*up))
        }
        _ => false,
    };
    let glu = (first..end).find(joins);
    (group, glu)
}
