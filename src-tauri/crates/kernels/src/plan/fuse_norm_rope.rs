//! Finds the norms of heads that fuse with the rotation of their results.

use std::ops::Range;

use super::layout::ValueLifetime;
use super::reads::is_read_once;
use crate::graph::{Graph, Op};

/// The norm before each of `ropes`, if every rotation has one, nothing else reads it, and all have one epsilon.
/// Otherwise, and where all values must stay readable, empty.
pub fn norms_before(
    graph: &Graph,
    ropes: &[usize],
    range: &Range<usize>,
    lifetime: ValueLifetime,
) -> Vec<usize> {
    let norms: Option<Vec<(usize, f32)>> = match lifetime {
        ValueLifetime::Needed => ropes.iter().map(|rope| norm_before(graph, *rope, range)).collect(),
        ValueLifetime::All => None,
    };
    match norms {
        Some(norms) if norms.iter().all(|(_, eps)| *eps == norms[0].1) => {
            norms.into_iter().map(|(at, _)| at).collect()
        }
        Some(_) | None => Vec::new(),
    }
}

/// The norm of each head that only this rotation reads, and its epsilon.
fn norm_before(graph: &Graph, rope: usize, range: &Range<usize>) -> Option<(usize, f32)> {
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
