//! Assigns each value of a device a place in its arena. Values whose live ranges do not overlap share memory; a value
//! that another device or the caller reads lives until the end of the run.

use std::ops::Range;

use super::step::Step;
use crate::capacity::Capacity;
use crate::graph::{DeviceId, Graph, Op, Rows, ValueId};

/// Floats per cache line; every value starts on one.
const CACHE_LINE_FLOATS: usize = 16;

/// Rows of a run after which recurrent states can be replayed: a draft under verification. Each row needs memory for the
/// values of all recurrent layers, less with this bound than the layers of a prompt share.
pub const MAX_REPLAY_ROWS: usize = 16;

/// Which values stay readable after a run. The others share memory once their last reader has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueLifetime {
    /// only the graph's output and the values that other devices read
    Needed,
    /// every value, for `compare`
    All,
}

/// The arena of one row bucket.
#[derive(Clone, Debug)]
pub struct ArenaLayout {
    /// (n_values) first float of each value; `usize::MAX` for values of other devices
    starts: Vec<usize>,
    /// length of the arena in floats
    pub len: usize,
}

impl ArenaLayout {
    /// The range of the first `n_rows` rows of `value`, in floats.
    pub fn span(&self, graph: &Graph, value: ValueId, n_rows: usize) -> Range<usize> {
        let start = self.starts[value.index()];
        start..start + n_rows * graph.value(value).width
    }
}

/// First and last step that need a value.
#[derive(Clone, Copy)]
pub struct LiveRange {
    pub from: usize,
    pub to: usize,
}

/// The smallest bucket that holds `n` rows.
pub fn bucket(n: usize, max: usize) -> usize {
    n.next_power_of_two().min(max)
}

/// All row buckets up to `max_rows`: 1, 2, 4 …
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
    lifetime: ValueLifetime,
) -> ArenaLayout {
    let mut ranges = live_ranges(graph, device, steps, lifetime);
    if (2..=MAX_REPLAY_ROWS).contains(&rows) {
        extend_recurrent(graph, steps.len(), &mut ranges);
    }
    let mut order: Vec<usize> = (0..ranges.len()).filter(|v| ranges[*v].is_some()).collect();
    order.sort_by_key(|v| ranges[*v].map_or(0, |range| range.from));
    let mut layout = ArenaLayout { starts: vec![usize::MAX; ranges.len()], len: 0 };
    let mut placed: Vec<(Range<usize>, LiveRange)> = Vec::new();
    for v in order {
        let Some(range) = ranges[v] else { continue };
        let value = graph.values()[v];
        let rows = match value.rows {
            Rows::Tokens => rows,
            Rows::Outputs => rows.min(capacity.max_outputs),
        };
        let len = (rows * value.width).next_multiple_of(CACHE_LINE_FLOATS);
        let start = lowest_gap(&placed, range, len);
        layout.starts[v] = start;
        layout.len = layout.len.max(start + len);
        placed.push((start..start + len, range));
        placed.sort_by_key(|(span, _)| span.start);
    }
    layout
}

/// The lowest start where `len` floats are free during `range`; `placed` is sorted by start.
fn lowest_gap(placed: &[(Range<usize>, LiveRange)], range: LiveRange, len: usize) -> usize {
    let mut start = 0;
    for (span, other) in placed {
        let overlaps = other.from <= range.to && range.from <= other.to;
        if overlaps && span.start < start + len {
            start = start.max(span.end);
        }
    }
    start
}

/// The live range of each value of `device`. None: the value is of another device, or is never computed.
pub fn live_ranges(
    graph: &Graph,
    device: DeviceId,
    steps: &[Step],
    lifetime: ValueLifetime,
) -> Vec<Option<LiveRange>> {
    let mut ranges: Vec<Option<LiveRange>> = vec![None; graph.values().len()];
    let begin = |v: ValueId, at: usize, ranges: &mut Vec<Option<LiveRange>>| {
        ranges[v.index()].get_or_insert(LiveRange { from: at, to: at });
    };
    let mut copies = copies_to(graph, device).peekable();
    for (at, step) in steps.iter().enumerate() {
        let nodes = step.nodes();
        let first = nodes.iter().copied().min().unwrap_or(usize::MAX);
        // a copy arrives before the first step whose nodes follow it
        while let Some((_, v)) = copies.next_if(|(node, _)| *node < first) {
            begin(v, at, &mut ranges);
        }
        for i in nodes {
            let node = &graph.nodes()[i];
            node.op.for_each_input(|x| {
                if let Some(range) = &mut ranges[x.index()] {
                    range.to = at;
                }
            });
            if let Some(v) = node.output {
                begin(v, at, &mut ranges);
            }
        }
    }
    for (_, v) in copies {
        begin(v, steps.len(), &mut ranges);
    }
    extend_external(graph, steps.len(), lifetime, &mut ranges);
    ranges
}

/// Extends the live ranges of values that are read from outside the run.
fn extend_external(graph: &Graph, end: usize, lifetime: ValueLifetime, ranges: &mut [Option<LiveRange>]) {
    let mut extend = |v: ValueId, from: Option<usize>| {
        if let Some(range) = &mut ranges[v.index()] {
            *range = LiveRange { from: from.unwrap_or(range.from), to: end };
        }
    };
    extend(graph.output(), None);
    if let Some(draft) = graph.draft() {
        extend(draft.hidden, None);
        extend(draft.output, None);
    }
    for node in graph.nodes() {
        if let Op::Copy { x } = node.op {
            extend(x, None);
        }
    }
    match lifetime {
        ValueLifetime::Needed => {}
        ValueLifetime::All => (0..graph.values().len()).for_each(|v| extend(ValueId(v as u32), Some(0))),
    }
}

/// Extends the live ranges of what recurrent nodes read and write, so that they can run again after the others.
fn extend_recurrent(graph: &Graph, end: usize, ranges: &mut [Option<LiveRange>]) {
    let mut extend = |v: ValueId| {
        if let Some(range) = &mut ranges[v.index()] {
            range.to = end;
        }
    };
    for node in graph.nodes().iter().filter(|node| node.op.is_recurrent()) {
        node.op.for_each_input(&mut extend);
        node.output.into_iter().for_each(&mut extend);
    }
}

/// Copies onto `device`: (node, its output).
fn copies_to(graph: &Graph, device: DeviceId) -> impl Iterator<Item = (usize, ValueId)> {
    graph.nodes().iter().enumerate().filter_map(move |(i, node)| match (&node.op, node.output) {
        (Op::Copy { .. }, Some(v)) if node.device == device => Some((i, v)),
        _ => None,
    })
}
