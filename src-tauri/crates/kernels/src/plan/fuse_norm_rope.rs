//! Which norms of heads go together with the rotation of what they norm.

use std::ops::Range;

use crate::backend::Retain;
use crate::graph::{Graph, Op, ValueId};

/// The norms of what some rotations rotate, one for each, where each stands for itself alone and all have one epsilon.
/// Empty: they are not all there, or somebody wants to see what they leave.
pub fn norms_of(graph: &Graph, ropes: &[usize], range: &Range<usize>, retain: Retain) -> Vec<usize> {
    let norms: Option<Vec<(usize, f32)>> = match retain {
        Retain::Needed => ropes.iter().map(|rope| norm_of(graph, *rope, range)).collect(),
        Retain::All => None,
    };
    match norms {
        Some(norms) if norms.iter().all(|(_, eps)| *eps == norms[0].1) => {
            norms.into_iter().map(|(at, _)| at).collect()
        }
        Some(_) | None => Vec::new(),
    }
}

/// The norm of each head that a rotation alone reads, and its epsilon.
fn norm_of(graph: &Graph, rope: usize, range: &Range<usize>) -> Option<(usize, f32)> {
    let nodes = graph.nodes();
    let Op::Rope { x, rope: shape } = &nodes[rope].op else { return None };
    let at = (range.start..rope).find(|at| nodes[*at].output == Some(*x))?;
    match &nodes[at].op {
        Op::RmsNorm { eps, width, .. } if *width == shape.head_dim && is_read_once(graph, *x) => {
            Some((at, *eps))
        }
        _ => None,
    }
}

/// Whether nobody sees a value but one operation.
pub fn is_read_once(graph: &Graph, value: ValueId) -> bool {
    let mut n = usize::from(graph.output() == value);
    for node in graph.nodes() {
        node.op.for_each_input(|x| n += usize::from(x == value));
    }
    n == 1
}
