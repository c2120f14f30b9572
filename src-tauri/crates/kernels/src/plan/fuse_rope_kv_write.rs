//! Which rotations go together with the writing of what they rotate: keys into the store, and the queries beside them.

use std::ops::Range;

use super::fuse::Step;
use super::norm_rotate::norms_of;
use crate::backend::Retain;
use crate::graph::{Graph, Op, RopeShape, ValueId};

/// The rotation and writing that node `i` is part of, if they may wait for each other.
pub fn rotation(graph: &Graph, i: usize, range: &Range<usize>, retain: Retain) -> Option<Step> {
    let nodes = graph.nodes();
    let (Op::RmsNorm { .. } | Op::Rope { .. } | Op::KvWrite { .. }) = &nodes[i].op else { return None };
    let write = (i..range.end).find(|at| matches!(nodes[*at].op, Op::KvWrite { .. }))?;
    let Op::KvWrite { k: rotated, layer, .. } = nodes[write].op else { return None };
    let rope_of = |at: usize| match &nodes[at].op {
        Op::Rope { rope, .. } => Some(rope),
        _ => None,
    };
    let is_free = |value: Option<ValueId>, between: Range<usize>| {
        !nodes[between].iter().any(|node| {
            let mut reads = matches!(node.op, Op::Attention { .. });
            node.op.for_each_input(|x| reads |= Some(x) == value);
            reads
        })
    };
    let k = (range.start..write).find(|at| nodes[*at].output == Some(rotated))?;
    let rope = rope_of(k)?;
    let kv = &graph.kv().layers[layer];
    if (rope.n_heads, rope.head_dim) != (kv.n_kv_heads, kv.head_dim) || !is_free(Some(rotated), k + 1..write)
    {
        return None;
    }
    let is_same = |other: &RopeShape| *other == RopeShape { n_heads: other.n_heads, ..rope.clone() };
    let q = (range.start..k).rfind(|at| matches!(nodes[*at].op, Op::Rope { .. } | Op::KvWrite { .. }));
    let q = q.filter(|q| rope_of(*q).is_some_and(is_same) && is_free(nodes[*q].output, q + 1..write));
    let ropes: Vec<usize> = q.into_iter().chain([k]).collect();
    let norms = norms_of(graph, &ropes, range, retain);
    let is_part = i == k || i == write || q == Some(i) || norms.contains(&i);
    is_part.then_some(Step::Rotate { norms, q, k, write })
}

/// Whether all that a step reads and doesn't make itself is there.
pub fn is_ready(graph: &Graph, step: &Step, start: usize, done: &[bool]) -> bool {
    let own = step.nodes();
    let is_there = |value: ValueId| {
        let made = graph.nodes().iter().position(|node| node.output == Some(value));
        made.is_none_or(|at| at < start || own.contains(&at) || done.get(at - start) == Some(&true))
    };
    let mut ready = true;
    own.iter().for_each(|i| graph.nodes()[*i].op.for_each_input(|x| ready &= is_there(x)));
    ready
}
