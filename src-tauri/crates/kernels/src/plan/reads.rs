//! Questions about who reads a value.

use crate::graph::{Graph, ValueId};

/// Whether exactly one operation reads `value` (and the caller does not).
pub fn is_read_once(graph: &Graph, value: ValueId) -> bool {
    let is_output = graph.output() == value
        || graph.draft().is_some_and(|draft| [draft.hidden, draft.output].contains(&value));
    let mut n_readers = usize::from(is_output);
    for node in graph.nodes() {
        node.op.for_each_input(|x| n_readers += usize::from(x == value));
    }
    n_readers == 1
}
