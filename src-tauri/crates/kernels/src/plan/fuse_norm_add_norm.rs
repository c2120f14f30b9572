//! Fuses `norm -> residual add -> norm` (Gemma's post-norm and the next pre-norm) into one step.

use std::ops::Range;

use super::layout::ValueLifetime;
use super::reads::is_read_once;
use super::step::Step;
use crate::graph::{Graph, Op, ValueId};

/// The fused step that starts with norm node `i`. None: the pattern does not match, or all values must stay readable.
pub fn fuse_norm_add_norm(
    graph: &Graph,
    i: usize,
    range: &Range<usize>,
    lifetime: ValueLifetime,
) -> Option<Step> {
    let (add, norm) = (i + 1, i + 2);
    if lifetime == ValueLifetime::All || norm >= range.end {
        return None;
    }
    let nodes = graph.nodes();
    let is_whole_row = |at: usize, of: ValueId| match &nodes[at].op {
        Op::RmsNorm { x, width, .. } => *x == of && graph.value(*x).width == *width,
        _ => false,
    };
    let Op::RmsNorm { x, .. } = nodes[i].op else { return None };
    let (Some(normed), Some(sum)) = (nodes[i].output, nodes[add].output) else { return None };
    let Op::Add { a, b } = nodes[add].op else { return None };
    let matches = (a == normed) != (b == normed)
        && is_whole_row(i, x)
        && is_whole_row(norm, sum)
        && is_read_once(graph, normed);
    matches.then_some(Step::AddNorm { before: Some(i), add, norm })
}
