//! Fuses the rotation of keys (and of the queries beside them) with the write of the keys into the KV store.

use std::ops::Range;

use super::fuse_norm_rope::norms_before;
use super::layout::ValueLifetime;
use super::step::Step;
use crate::graph::{Graph, Op, RopeShape, ValueId};

/// The fused step that node `i` belongs to. None: the pattern does not match, or another node needs a value in between.
pub fn fuse_rope_kv_write(
    graph: &Graph,
    i: usize,
    range: &Range<usize>,
    lifetime: ValueLifetime,
) -> Option<Step> {
    let nodes = graph.nodes();
    let (Op::RmsNorm { .. } | Op::Rope { .. } | Op::KvWrite { .. }) = &nodes[i].op else { return None };
    let write = (i..range.end).find(|at| matches!(nodes[*at].op, Op::KvWrite { .. }))?;
    let Op::KvWrite { k: rotated, layer, .. } = nodes[write].op else { return None };
    let rope_of = |at: usize| match &nodes[at].op {
        Op::Rope { rope, .. } => Some(rope),
        _ => None,
    };
    let is_unread = |value: Option<ValueId>, between: Range<usize>| {
        !nodes[between].iter().any(|node| {
            let mut reads = matches!(node.op, Op::Attention { .. });
            node.op.for_each_input(|x| reads |= Some(x) == value);
            reads
        })
    };
    let k = (range.start..write).find(|at| nodes[*at].output == Some(rotated))?;
    let rope = rope_of(k)?;
    let kv = &graph.kv().layers[layer];
    if (rope.n_heads, rope.head_dim) != (kv.n_kv_heads, kv.head_dim)
        || !is_unread(Some(rotated), k + 1..write)
    {
        return None;
    }
    let is_same = |other: &RopeShape| *other == RopeShape { n_heads: other.n_heads, ..rope.clone() };
    let q = (range.start..k).rfind(|at| matches!(nodes[*at].op, Op::Rope { .. } | Op::KvWrite { .. }));
    let q = q.filter(|q| rope_of(*q).is_some_and(is_same) && is_unread(nodes[*q].output, q + 1..write));
    let ropes: Vec<usize> = q.into_iter().chain([k]).collect();
    let norms = norms_before(graph, &ropes, range, lifetime);
    let contains_i = i == k || i == write || q == Some(i) || norms.contains(&i);
    contains_i.then_some(Step::RopeKvWrite { norms, q, k, write })
}

/// Whether all inputs of a step that it does not compute itself are available.
pub fn is_ready(graph: &Graph, step: &Step, start: usize, done: &[bool]) -> bool {
    let own = step.nodes();
    let is_available = |value: ValueId| {
        let maker = graph.nodes().iter().position(|node| node.output == Some(value));
        maker.is_none_or(|at| at < start || own.contains(&at) || done.get(at - start) == Some(&true))
    };
    let mut ready = true;
    own.iter().for_each(|i| graph.nodes()[*i].op.for_each_input(|x| ready &= is_available(x)));
    ready
}
