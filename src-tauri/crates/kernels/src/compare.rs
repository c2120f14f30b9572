//! Runs two backends over one graph, node by node, and reports the first node whose results differ. After each node the
//! second backend receives the first one's result, so that every node is judged independently.

use std::ops::Range;
use std::sync::Arc;

use crate::backend::Backend;
use crate::batch::Batch;
use crate::capacity::Capacity;
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, Op};
use crate::plan::layout::ValueLifetime;

/// The first node whose values differ by more than the tolerance.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeDifference {
    /// name of the node
    pub node: String,
    /// name of its operation
    pub op: &'static str,
    /// index into the (rows, width) value
    pub at: usize,
    /// the element as computed by the first backend
    pub a: f32,
    /// the element as computed by the second backend
    pub b: f32,
    /// largest |a − b| of the node, relative to the root mean square of `a`
    pub relative: f32,
}

/// Compares two backends over consecutive batches. `tolerance` is relative to the root mean square of each value.
/// The graph must be on one device. None: no node differs.
pub fn compare(
    graph: &Arc<Graph>,
    [a, b]: [&mut dyn Backend; 2],
    capacity: Capacity,
    batches: &[Batch],
    tolerance: f32,
) -> Result<Option<NodeDifference>, KernelError> {
    compare_after(graph, [a, b], capacity, (&[], batches), tolerance)
}

/// As `compare`, after batches that only fill the KV store: nodes after the last KV write are skipped for them.
pub(crate) fn compare_after(
    graph: &Arc<Graph>,
    [a, b]: [&mut dyn Backend; 2],
    capacity: Capacity,
    (before, batches): (&[Batch], &[Batch]),
    tolerance: f32,
) -> Result<Option<NodeDifference>, KernelError> {
    let device = DeviceId(0);
    a.prepare(graph, device, capacity, ValueLifetime::All)?;
    b.prepare(graph, device, capacity, ValueLifetime::All)?;
    for batch in before {
        for backend in [&mut *a, &mut *b] {
            backend.begin(batch)?;
            backend.run(nodes_until_kv_write(graph), batch, None)?;
        }
    }
    for batch in batches {
        a.begin(batch)?;
        b.begin(batch)?;
        for (i, node) in graph.nodes().iter().enumerate() {
            a.run(i..i + 1, batch, None)?;
            b.run(i..i + 1, batch, None)?;
            let Some(value) = node.output else { continue };
            let n_rows = batch.rows(graph.value(value).rows);
            let (x, y) = (a.read(value, n_rows), b.read(value, n_rows));
            if let Some(difference) = differ(&node.name, &node.op, x, y, tolerance) {
                return Ok(Some(difference));
            }
            b.write(value, x);
        }
    }
    Ok(None)
}

/// The nodes up to and including the last KV write.
pub(crate) fn nodes_until_kv_write(graph: &Graph) -> Range<usize> {
    let written = graph.nodes().iter().rposition(|node| matches!(node.op, Op::KvWrite { .. }));
    0..written.map_or(0, |at| at + 1)
}

fn differ(node: &str, op: &Op, a: &[f32], b: &[f32], tolerance: f32) -> Option<NodeDifference> {
    let (at, relative) = largest_difference(a, b).filter(|(_, relative)| *relative > tolerance)?;
    let op = crate::ops::row(op).name;
    Some(NodeDifference { node: node.to_owned(), op, at, a: a[at], b: b[at], relative })
}

/// The index of the largest difference, and the difference relative to the root mean square of `a`. None: no elements.
pub(crate) fn largest_difference(a: &[f32], b: &[f32]) -> Option<(usize, f32)> {
    let square: f64 = a.iter().map(|x| f64::from(*x).powi(2)).sum();
    let size = ((square / a.len().max(1) as f64).sqrt() as f32).max(f32::MIN_POSITIVE);
    let distance = |i: usize| match (a[i].is_nan(), b[i].is_nan()) {
        (true, true) => 0.0,
        (false, false) => (a[i] - b[i]).abs(),
        _ => f32::INFINITY,
    };
    let worst = (0..a.len()).max_by(|i, j| distance(*i).total_cmp(&distance(*j)))?;
    Some((worst, distance(worst) / size))
}
