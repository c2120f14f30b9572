//! Groups nodes into steps. Multiplications of one input share its quantized form and one parallel region. A residual
//! add and the norm of its sum share one pass. A gated unit is finished while its two inputs are still in cache.
//! Every value is still written, so that a fused plan can be compared with an unfused one, except where a GPU fuses
//! more (`Fusion::Gpu`).

use std::ops::Range;

use super::fuse_norm_add_norm::fuse_norm_add_norm;
use super::fuse_rope_kv_write::{fuse_rope_kv_write, is_ready};
use super::layout::ValueLifetime;
use super::step::{MAX_MATMULS, Step};
use crate::graph::{Graph, Node, Op};

/// How far a backend fuses nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fusion {
    /// one step per node
    None,
    /// what pays on a CPU
    Full,
    /// `Full`, plus what saves kernel launches on a GPU; intermediate values are only written with `ValueLifetime::All`
    Gpu(ValueLifetime),
}

/// Groups a range of nodes on one device into steps.
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
            Fusion::Gpu(lifetime) => match fuse_rope_kv_write(graph, i, &range, lifetime) {
                Some(step) if is_ready(graph, &step, range.start, &done) => step,
                // it runs at the latest with the write
                Some(_) => continue,
                None => fuse_norm_add_norm(graph, i, &range, lifetime)
                    .unwrap_or_else(|| step_at(graph, i, range.end)),
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
                group(graph, i, end, &|op| matches!(op, Op::MatMul { x: other, .. } if other == x));
            Step::MatMuls { nodes, glu }
        }
        Op::ExpertMatMul { x, route, .. } => {
            let is_same =
                |op: &Op| matches!(op, Op::ExpertMatMul { x: a, route: b, .. } if (a, b) == (x, route));
            match group(graph, i, end, &is_same) {
                (nodes, Some(glu)) => Step::ExpertMatMuls { nodes, glu: Some(glu) },
                (_, None) => Step::ExpertMatMuls { nodes: vec![i], glu: None },
            }
        }
        Op::Embed { .. }
        | Op::Given { .. }
        | Op::ReplaceGiven { .. }
        | Op::MergeRows { .. }
        | Op::RmsNorm { .. }
        | Op::LayerNorm { .. }
        | Op::Rope { .. }
        | Op::PositionScale { .. }
        | Op::KvWrite { .. }
        | Op::Attention { .. }
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
        | Op::ShortConv { .. }
        | Op::DeltaNet { .. }
        | Op::Ssm { .. }
        | Op::OutputRows { .. }
        | Op::Copy { .. } => Step::Node(i),
    }
}

/// All later nodes that satisfy `is_same`: their input is available, so they may run now; only the time at which their
/// values are written changes. With them the gated unit that joins them, if they are two.
fn group(
    graph: &Graph,
    first: usize,
    end: usize,
    is_same: &dyn Fn(&Op) -> bool,
) -> (Vec<usize>, Option<usize>) {
    let nodes = graph.nodes();
    let group: Vec<usize> = (first..end).filter(|i| is_same(&nodes[*i].op)).take(MAX_MATMULS).collect();
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
