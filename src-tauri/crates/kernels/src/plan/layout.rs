//! Where each value of a device lies in its arena. Values whose lives do not meet share memory; a value that another
//! device or the caller reads lives to the end.

use std::ops::Range;

use super::fuse::Step;
use super::{Capacity, bucket};
use crate::backend::Retain;
use crate::graph::{DeviceId, Graph, Op, Rows, ValueId};

/// Floats per cache line: every value starts on one.
const LINE: usize = 16;

/// Spans of one row bucket.
#[derive(Clone, Debug)]
pub struct Layout {
    /// (n_values) where a value starts, in floats; `usize::MAX` for values of other devices
    starts: Vec<usize>,
    /// floats in all
    pub len: usize,
}

impl Layout {
    /// The first `n_rows` rows of `value`.
    pub fn span(&self, graph: &Graph, value: ValueId, n_rows: usize) -> Range<usize> {
        let start = self.starts[value.index()];
        start..start + n_rows * graph.value(value).width
    }
}

/// First and last moment of a value, counted in steps.
#[derive(Clone, Copy)]
pub struct Life {
    pub from: usize,
    pub to: usize,
}

/// Row buckets up to `max_rows`: 1, 2, 4 …
pub fn buckets(max_rows: usize) -> impl Iterator<Item = usize> {
    let mut next = Some(1);
    std::iter::from_fn(move || {
        let n = next?;
        let n = bucket(n, max_rows);
        next = (n < max_rows).then_some(n * 2);
        Some(n)
    })
}

/// Lays out the values of `device` for batches of at most `rows` rows.
/// `steps` are all steps of this device in execution order.
pub fn lay_out(
    graph: &Graph,
    device: DeviceId,
    steps: &[Step],
    rows: usize,
    capacity: &Capacity,
    retain: Retain,
) -> Layout {
    let lives = lives(graph, device, steps, retain);
    let mut order: Vec<usize> = (0..lives.len()).filter(|v| lives[*v].is_some()).collect();
    order.sort_by_key(|v| lives[*v].map_or(0, |l| l.from));
    let mut layout = Layout { starts: vec![usize::MAX; lives.len()], len: 0 };
    let mut placed: Vec<(Range<usize>, Life)> = Vec::new();
    for v in order {
        let Some(life) = lives[v] else { continue };
        let value = graph.values()[v];
        let rows = match value.rows {
            Rows::Tokens => rows,
            Rows::Outputs => rows.min(capacity.max_outputs),
        };
        let len = (rows * value.width).next_multiple_of(LINE);
        let start = lowest_gap(&placed, life, len);
        layout.starts[v] = start;
        layout.len = layout.len.max(start + len);
        placed.push((start..start + len, life));
        placed.sort_by_key(|(span, _)| span.start);
    }
    layout
}

/// The lowest start where `len` floats are free during `life`; `placed` is sorted by start.
fn lowest_gap(placed: &[(Range<usize>, Life)], life: Life, len: usize) -> usize {
    let mut start = 0;
    for (span, other) in placed {
        let meets = other.from <= life.to && life.from <= other.to;
        if meets && span.start < start + len {
            start = start.max(span.end);
        }
    }
    start
}

/// When each value of `device` is needed; None: of another device, or never made.
pub fn lives(graph: &Graph, device: DeviceId, steps: &[Step], retain: Retain) -> Vec<Option<Life>> {
    let mut lives: Vec<Option<Life>> = vec![None; graph.values().len()];
    let begin = |v: ValueId, at: usize, lives: &mut Vec<Option<Life>>| {
        lives[v.index()].get_or_insert(Life { from: at, to: at });
    };
    let mut copies = copied_in(graph, device).peekable();
    for (at, step) in steps.iter().enumerate() {
        let nodes = step.nodes();
        let first = nodes.iter().copied().min().unwrap_or(usize::MAX);
        // a copy arrives before the first step whose nodes follow it
        while let Some((_, v)) = copies.next_if(|(node, _)| *node < first) {
            begin(v, at, &mut lives);
        }
        for i in nodes {
            let node = &graph.nodes()[i];
            node.op.for_each_input(|x| {
                if let Some(life) = &mut lives[x.index()] {
                    life.to = at;
                }
            });
            if let Some(v) = node.output {
                begin(v, at, &mut lives);
            }
        }
    }
    for (_, v) in copies {
        begin(v, steps.len(), &mut lives);
    }
    pin(graph, steps.len(), retain, &mut lives);
    lives
}

/// Lengthens the lives of values that are read from outside.
fn pin(graph: &Graph, end: usize, retain: Retain, lives: &mut [Option<Life>]) {
    let mut keep = |v: ValueId, from: Option<usize>| {
        if let Some(life) = &mut lives[v.index()] {
            *life = Life { from: from.unwrap_or(life.from), to: end };
        }
    };
    keep(graph.output(), None);
    for node in graph.nodes() {
        if let Op::Copy { x } = node.op {
            keep(x, None);
        }
    }
    match retain {
        Retain::Needed => {}
        Retain::All => (0..graph.values().len()).for_each(|v| keep(ValueId(v as u32), Some(0))),
    }
}

/// Copies onto `device`: (node, its output).
fn copied_in(graph: &Graph, device: DeviceId) -> impl Iterator<Item = (usize, ValueId)> {
    graph.nodes().iter().enumerate().filter_map(move |(i, node)| match (&node.op, node.output) {
        (Op::Copy { .. }, Some(v)) if node.device == device => Some((i, v)),
        _ => None,
    })
}
