//! Copies the results of a run back: values that are read from outside, and of the output only its top-k columns where
//! these are selected.

use std::ops::Range;

use super::PreparedGpuGraph;
use super::buffers::floats_of;
use super::device::Device;
use super::top_k::TopKSelector;
use crate::batch::Batch;
use crate::error::KernelError;
use crate::graph::{Graph, Op, ValueId};
use crate::ops::top_k::{TopKEntry, of_rows};
use crate::plan::layout::ValueLifetime;

/// The values of a range of nodes that are read from outside: the output, copies to other devices, or all.
pub fn results(graph: &Graph, nodes: Range<usize>, lifetime: ValueLifetime) -> Vec<ValueId> {
    let copied = |value: ValueId| {
        let copies = |op: &Op| matches!(op, Op::Copy { x } if *x == value);
        graph.nodes().iter().any(|node| copies(&node.op))
    };
    let of_draft =
        |value: ValueId| graph.draft().is_some_and(|draft| [draft.hidden, draft.output].contains(&value));
    let is_read = |value: &ValueId| match lifetime {
        ValueLifetime::All => true,
        ValueLifetime::Needed => *value == graph.output() || of_draft(*value) || copied(*value),
    };
    nodes.filter_map(|i| graph.nodes()[i].output).filter(is_read).collect()
}

impl PreparedGpuGraph {
    /// The k that a program selects on the GPU. None: it returns whole rows.
    pub(super) fn gpu_k(&self, at: usize, batch: &Batch) -> Option<usize> {
        let top_k = self.programs[at].top_k.as_ref();
        self.selected_k.filter(|k| top_k.is_some_and(|top_k| top_k.can_select(*k, batch.outputs.len())))
    }

    /// The top-k entries of the last run, selected on the GPU or, failing that, here.
    pub(super) fn top_k(
        &self,
        output: ValueId,
        (n_rows, n_columns): (usize, usize),
        k: usize,
        out: &mut Vec<TopKEntry>,
    ) {
        let mut selectors = self.programs.iter().filter_map(|program| program.top_k.as_ref());
        match selectors.find(|top_k| top_k.can_select(k, n_rows)) {
            Some(top_k) => top_k.read(k, out),
            None => of_rows(&self.values.read_all(output)[..n_rows * n_columns], n_columns, k, out),
        }
    }

    /// Submits what was encoded of a program before, and the rest with the copy of its results. Returns the size of the
    /// results in bytes.
    pub(super) fn submit(
        &self,
        gpu: &Device,
        (before, mut encoder): (Option<wgpu::CommandBuffer>, wgpu::CommandEncoder),
        at: usize,
        batch: &Batch,
    ) -> u64 {
        let (program, gpu_k) = (&self.programs[at], self.gpu_k(at, batch));
        let n_outputs = batch.outputs.len();
        if let (Some(k), Some(top_k)) = (gpu_k, &program.top_k)
            && n_outputs > 0
        {
            top_k.encode(&mut encoder, k, n_outputs);
        }
        let mut at = 0;
        for value in program.whole_results(gpu_k) {
            let n_bytes = self.n_bytes(*value, batch);
            encoder.copy_buffer_to_buffer(self.values.buffer(*value), 0, &program.staging, at, n_bytes);
            at += n_bytes;
        }
        gpu.queue.submit(before.into_iter().chain([encoder.finish()]));
        at
    }

    /// Waits for the submitted program of a range of nodes, and reads its results.
    pub(super) fn fetch(
        &mut self,
        gpu: &Device,
        nodes: Range<usize>,
        batch: &Batch,
        n_bytes: u64,
    ) -> Result<(), KernelError> {
        let at = self.programs.iter().position(|program| program.nodes == nodes);
        let at = at.expect("submitted nodes have a program");
        let gpu_k = self.gpu_k(at, batch);
        let Self { programs, values, graph, .. } = self;
        let program = &mut programs[at];
        if let (Some(k), Some(top_k)) = (gpu_k, &mut program.top_k) {
            values.mirror(graph.output(), 0);
            top_k.fetch(gpu, k, batch.outputs.len())?;
        }
        if n_bytes == 0 {
            return gpu.check();
        }
        let (staging, whole) = (&program.staging, program.whole_results(gpu_k));
        gpu.mapped(staging, n_bytes, &mut |mapped| {
            let mut rest = mapped;
            for id in whole {
                let value = graph.value(*id);
                let len = batch.rows(value.rows) * value.width;
                let (bytes, others) = rest.split_at(len * size_of::<f32>());
                floats_of(bytes, values.mirror(*id, len));
                rest = others;
            }
        })
    }

    /// Replaces the results by NaN, as a broken kernel might.
    pub(super) fn spoil(&mut self, nodes: Range<usize>) {
        for value in results(&self.graph, nodes, self.lifetime) {
            self.values.mirror_of(value).fill(f32::NAN);
        }
        self.programs.iter_mut().filter_map(|program| program.top_k.as_mut()).for_each(TopKSelector::spoil);
    }

    /// Checks the output for NaN. It is the fault of the GPU or of the weights; running on the CPU shows which.
    pub(super) fn check_output(&self, gpu: &Device, nodes: Range<usize>) -> Result<(), KernelError> {
        let output = self.graph.output();
        let computes_output = nodes.into_iter().any(|i| self.graph.nodes()[i].output == Some(output));
        let mut selected = self.programs.iter().filter_map(|program| program.top_k.as_ref());
        let has_nan =
            self.values.read_all(output).iter().any(|x| x.is_nan()) || selected.any(TopKSelector::has_nan);
        match computes_output && has_nan {
            true => Err(gpu.error(gpu.features().first_suspect(), "its results are not numbers")),
            false => Ok(()),
        }
    }

    pub(super) fn n_bytes(&self, value: ValueId, batch: &Batch) -> u64 {
        let value = self.graph.value(value);
        (batch.rows(value.rows) * value.width * size_of::<f32>()) as u64
    }
}
