//! What a pass allocates at most, found from the graph without running it.

use std::ops::Range;

use kernels::Op;

use super::attention::QUERIES;
use super::integer_product::IntegerProducts;
use super::product::MAX_PACKED_BYTES;
use super::{HEAD_ROWS, MemoryUse, PassState, TrainingPass};

/// Copies of the widest value that a backward product makes.
const WIDE_COPIES: usize = 2;
/// Probabilities, scores, their gradients, and a transposed copy, per thread and attention head in work.
const HEAD_BUFFERS: usize = 4;

impl TrainingPass {
    /// Returns an upper bound of the bytes that a batch of `n_rows` allocates, weights and parameters apart. It holds for
    /// a pass whose sequences are shorter, too.
    pub fn peak_bytes(&self, n_rows: usize, memory: MemoryUse) -> u64 {
        let again = match memory {
            MemoryUse::KeepAll => 0,
            MemoryUse::RecomputeLayers => self.widest_saved(),
        };
        let per_row = again + self.widest_segment() + self.widest_value() * WIDE_COPIES + self.rope_width();
        let head_rows = n_rows.min(HEAD_ROWS);
        let floats = n_rows * per_row + head_rows * self.head_width() * 2 + self.attention_floats(n_rows);
        self.kept_bytes(n_rows, memory)
            + 4 * floats as u64
            + MAX_PACKED_BYTES
            + IntegerProducts::max_bytes(n_rows)
            + self.state.products.gpu.peak_bytes(n_rows * self.widest_value())
    }

    fn widths(&self, nodes: Range<usize>) -> impl Iterator<Item = usize> + '_ {
        let graph = &self.state.graph;
        graph.nodes()[nodes].iter().filter_map(|node| Some(graph.value(node.output?).width))
    }

    /// Width of all gradients of a segment, the largest of all segments.
    fn widest_segment(&self) -> usize {
        let segments = self.state.plan.segments.iter();
        segments.map(|segment| self.widths(segment.clone()).sum()).max().unwrap_or(0)
    }

    /// Width of the values of a segment that its gradients need, the largest of all segments.
    fn widest_saved(&self) -> usize {
        let PassState { graph, plan, .. } = &self.state;
        let of = |segment: &Range<usize>| -> usize {
            let outputs = graph.nodes()[segment.clone()].iter().filter_map(|node| node.output);
            outputs.filter(|v| plan.is_saved[v.index()]).map(|v| graph.value(v).width).sum()
        };
        plan.segments.iter().map(of).max().unwrap_or(0)
    }

    fn widest_value(&self) -> usize {
        self.widths(0..self.state.plan.head.start).max().unwrap_or(0)
    }

    fn head_width(&self) -> usize {
        self.widths(self.state.plan.head.clone()).sum()
    }

    /// Cosines, sines, and the sines of the reverse rotation.
    fn rope_width(&self) -> usize {
        self.state.angles.iter().map(|angles| 3 * angles.rope.inv_freq.len()).sum()
    }

    /// Gradients of every head, and what each thread needs for the head in work.
    fn attention_floats(&self, n_rows: usize) -> usize {
        let n_threads = self.state.products.workers.n_threads();
        let of = |op: &Op| match op {
            Op::Attention { attention, .. } => {
                let heads = attention.n_heads * attention.head_dim * 3 * n_rows;
                let in_work = HEAD_BUFFERS * QUERIES + 2 * attention.head_dim;
                heads + n_threads * in_work * n_rows
            }
            _ => 0,
        };
        self.state.graph.nodes().iter().map(|node| of(&node.op)).max().unwrap_or(0)
    }
}
