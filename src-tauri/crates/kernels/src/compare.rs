//! Runs two backends over one graph, node by node, and names the first node where they differ. After each node the
//! second backend is given the first one's result, so that every node is judged by itself.

use std::ops::Range;
use std::sync::Arc;

use crate::backend::{Backend, Retain};
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, Op};
use crate::plan::{Batch, Capacity};

/// The first node whose values differ by more than the tolerance.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub node: String,
    pub op: &'static str,
    /// index into the (rows, width) value
    pub at: usize,
    pub a: f32,
    pub b: f32,
    /// largest |a − b| of the node, as a share of the root mean square of `a`
    pub relative: f32,
}

/// Compares over batches that follow each other; `tolerance` is a share of the root mean square of each value.
/// The graph must live on one device. None: no node differs.
pub fn compare(
    graph: &Arc<Graph>,
    [a, b]: [&mut dyn Backend; 2],
    capacity: Capacity,
    batches: &[Batch],
    tolerance: f32,
) -> Result<Option<Difference>, KernelError> {
    compare_after(graph, [a, b], capacity, (&[], batches), tolerance)
}

/// As `compare`, after batches of which only the keys and values count: nothing behind their last writing is computed.
pub(crate) fn compare_after(
    graph: &Arc<Graph>,
    [a, b]: [&mut dyn Backend; 2],
    capacity: Capacity,
    (before, batches): (&[Batch], &[Batch]),
    tolerance: f32,
) -> Result<Option<Difference>, KernelError> {
    let device = DeviceId(0);
    a.prepare(graph, device, capacity, Retain::All)?;
    b.prepare(graph, device, capacity, Retain::All)?;
    for batch in before {
        for backend in [&mut *a, &mut *b] {
            backend.begin(batch)?;
            backend.run(until_written(graph), batch, None)?;
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

/// The nodes up to the last writing of keys and values.
pub(crate) fn until_written(graph: &Graph) -> Range<usize> {
    let written = graph.nodes().iter().rposition(|node| matches!(node.op, Op::KvWrite { .. }));
    0..written.map_or(0, |at| at + 1)
}

fn differ(node: &str, op: &Op, a: &[f32], b: &[f32], tolerance: f32) -> Option<Difference> {
    let (at, relative) = farthest(a, b).filter(|(_, relative)| *relative > tolerance)?;
    let op = crate::ops::row(op).name;
    Some(Difference { node: node.to_owned(), op, at, a: a[at], b: b[at], relative })
}

/// Where two values are farthest from each other, and how far, as a share of the root mean square of `a`. None: they
/// are empty.
pub(crate) fn farthest(a: &[f32], b: &[f32]) -> Option<(usize, f32)> {
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
