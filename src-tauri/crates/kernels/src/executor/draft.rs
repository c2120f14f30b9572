//! Runs a graph's draft block, which computes apart from the rest on the same keys and values.

use super::Executor;
use crate::batch::Batch;
use crate::error::KernelError;
use crate::graph::{DraftPart, Graph};
use crate::plan::segments::{Segment, segments};

/// The segments that run together: all but the draft block.
pub(super) fn without_draft(graph: &Graph) -> Vec<Segment> {
    let first = graph.draft().map_or(usize::MAX, |draft| draft.first_node);
    let is_before = |segment: &Segment| match segment {
        Segment::Run { nodes, .. } => nodes.start < first,
        Segment::Copy { .. } => true,
    };
    segments(graph).into_iter().filter(is_before).collect()
}

impl Executor {
    /// Runs the draft block on a batch: writes its keys and values, and leaves the rows of `batch.outputs` in
    /// `draft_output`. The recurrent states stay as they are.
    /// Errors: those of `run`; no draft block.
    pub fn run_draft(&mut self, batch: &Batch) -> Result<(), KernelError> {
        self.n_outputs = 0;
        self.n_draft_outputs = 0;
        self.top_k.clear();
        let Some(DraftPart { first_node, output, .. }) = self.graph.draft() else {
            return Err(KernelError::mismatch("executor", "draft block", 1, 0));
        };
        batch.check(&self.graph, &self.capacity, &mut self.slots)?;
        let device = &mut self.devices[self.graph.value(output).device.0];
        device.begin(batch)?;
        device.run(first_node..self.graph.nodes().len(), batch, None)?;
        self.n_draft_outputs = batch.outputs.len();
        Ok(())
    }

    /// (outputs of the last `run_draft`, width of the draft block's output)
    pub fn draft_output(&self) -> &[f32] {
        self.graph.draft().map_or(&[], |draft| self.value(draft.output, self.n_draft_outputs))
    }

    /// (`n_outputs` of the last run, width) what a graph with a draft block keeps readable beside the output.
    pub fn hidden(&self, n_outputs: usize) -> &[f32] {
        self.graph.draft().map_or(&[], |draft| self.value(draft.hidden, n_outputs))
    }
}
