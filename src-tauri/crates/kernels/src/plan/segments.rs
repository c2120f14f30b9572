//! Cuts a graph into segments: runs of consecutive nodes on one device, joined by explicit copies.

use std::ops::Range;

use crate::graph::{DeviceId, Graph, Op, ValueId};

/// A run of consecutive nodes on one device, or a copy between two devices.
#[derive(Clone, Debug, PartialEq)]
pub enum Segment {
    Run { device: DeviceId, nodes: Range<usize> },
    Copy { from: DeviceId, to: DeviceId, x: ValueId, output: ValueId },
}

/// The node ranges of one device in execution order: what `Backend::run` is called with.
pub fn runs_of(graph: &Graph, of: DeviceId) -> impl Iterator<Item = Range<usize>> {
    segments(graph).into_iter().filter_map(move |segment| match segment {
        Segment::Run { device, nodes } => (device == of).then_some(nodes),
        Segment::Copy { .. } => None,
    })
}

/// Cuts the nodes wherever the device changes, at each copy, and before a draft block.
pub fn segments(graph: &Graph) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    let draft = graph.draft().map(|draft| draft.first_node);
    for (i, node) in graph.nodes().iter().enumerate() {
        if let (Op::Copy { x }, Some(output)) = (&node.op, node.output) {
            let from = graph.value(*x).device;
            segments.push(Segment::Copy { from, to: node.device, x: *x, output });
            continue;
        }
        match segments.last_mut() {
            Some(Segment::Run { device, nodes }) if *device == node.device && draft != Some(i) => {
                nodes.end = i + 1;
            }
            _ => segments.push(Segment::Run { device: node.device, nodes: i..i + 1 }),
        }
    }
    segments
}
