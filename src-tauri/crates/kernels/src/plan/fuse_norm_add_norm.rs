//! Which norms go together with the sum of what they leave, and with the norm after it.

use std::ops::Range;

use super::fuse::Step;
use super::norm_rotate::is_read_once;
use crate::backend::Retain;
use crate::graph::{Graph, Op, ValueId};

/// The step that begins with the norm `i` of what a sum adds. None: it has no part in one, or somebody wants to see what
/// it leaves.
pub fn sandwich(graph: &Graph, i: usize, range: &Range<usize>, retain: Retain) -> Option<Step> {
    let (add, norm) = (i + 1, i + 2);
    if retain == Retain::All || norm >= range.end {
        return None;
    }
    let nodes = graph.nodes();
    let is_whole = |at: usize, of: ValueId| match &nodes[at].op {
        Op::RmsNorm { x, width, .. } => *x == of && graph.value(*x).width == *width,
        _ => false,
    };
    let Op::RmsNorm { x, .. } = nodes[i].op else { return None };
    let (Some(normed), Some(sum)) = (nodes[i].output, nodes[add].output) else { return None };
    let Op::Add { a, b } = nodes[add].op else { return None };
    let is_sandwich = (a == normed) != (b == normed)
        && is_whole(i, x)
        && is_whole(norm, sum)
        && is_read_once(graph, normed);
    is_sandwich.then_some(Step::AddNorm { before: Some(i), add, norm })
}
