//! Selects the top-k columns of the output on the GPU, in stages, so that only these are copied back.

use super::buffers::BufferSpan;
use super::device::Device;
use super::nodes::plain;
use super::program::{Binding, Dispatch, Extent, ProgramBuilder};
use super::shader;
use crate::capacity::Capacity;
use crate::error::KernelError;
use crate::graph::{Rows, ValueId};
use crate::ops::top_k::{NAN_RANK, TopKEntry, value_of_rank};

/// Largest k selected on the GPU: enough for usual sampler settings. For more, whole rows are copied back.
const MAX_K: usize = 128;
/// Largest number of rows that are selected from.
const MAX_ROWS: usize = 64;
/// Entries per workgroup, as in the WGSL.
const SEGMENT: usize = 1024;
/// Enough stages for eight million columns.
const MAX_STAGES: usize = 6;
const ENTRY_BYTES: u64 = 8;

/// The kernels and buffers of the selection.
pub struct TopKSelector {
    stages: Vec<Dispatch>,
    /// results of the stages, used alternately: (rows, entries, rank and column)
    buffers: [wgpu::Buffer; 2],
    /// mappable copy of the result
    staging: wgpu::Buffer,
    n_columns: usize,
    max_rows: usize,
    /// ranks and columns of the last run
    selected: Vec<[u32; 2]>,
}

/// Workgroups per row in each stage.
fn groups(n_columns: usize, k: usize) -> Vec<u32> {
    let (mut n, mut groups) = (n_columns, Vec::new());
    while groups.last() != Some(&1) {
        let n_groups = n.div_ceil(SEGMENT).max(1);
        groups.push(n_groups as u32);
        n = n_groups * k;
    }
    groups
}

impl TopKSelector {
    /// Compiles the selection from the graph's output, a value of this device.
    pub fn new(
        builder: &mut ProgramBuilder,
        output: ValueId,
        capacity: &Capacity,
    ) -> Result<Self, KernelError> {
        let gpu = builder.gpu.clone();
        let n_columns = builder.graph.value(output).width;
        let max_rows = capacity.max_outputs.min(MAX_ROWS);
        let n_bytes = |n_entries: usize| (max_rows * n_entries) as u64 * ENTRY_BYTES;
        let first = n_columns.div_ceil(SEGMENT) * MAX_K;
        let buffers = [
            gpu.storage("candidates", n_bytes(first))?,
            gpu.storage("candidates", n_bytes(first.div_ceil(SEGMENT) * MAX_K))?,
        ];
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let staging = gpu.buffer("candidates", n_bytes(MAX_K), usage)?;
        let node = builder.graph.nodes().iter().position(|node| node.output == Some(output));
        let node = node.expect("some node computes the output");
        let n_before = builder.dispatches.len();
        for stage in 0..MAX_STAGES {
            let from = match stage {
                0 => Binding::Value(output),
                _ => Binding::Buffer(BufferSpan::whole(&buffers[(stage - 1) % 2])),
            };
            let to = Binding::Buffer(BufferSpan::whole(&buffers[stage % 2]));
            let bindings = [from, to];
            let params = [n_columns as u32, stage as u32];
            let extent = Extent::groups(1, Rows::Outputs);
            builder.add(node, (&shader::TOP_K, plain()), &params, &bindings, extent)?;
        }
        let stages = builder.dispatches.split_off(n_before);
        Ok(Self { stages, buffers, staging, n_columns, max_rows, selected: Vec::new() })
    }

    /// Whether `k` columns of each of `n_rows` rows can be selected.
    pub fn can_select(&self, k: usize, n_rows: usize) -> bool {
        k <= MAX_K && n_rows <= self.max_rows && groups(self.n_columns, k).len() <= MAX_STAGES
    }

    /// Number of kernels for a selection.
    pub fn n_stages(&self, k: usize) -> usize {
        groups(self.n_columns, k).len()
    }

    /// Encodes the selection of `k` columns of each row, and the copy of the result.
    pub fn encode(&self, encoder: &mut wgpu::CommandEncoder, k: usize, n_rows: usize) {
        let groups = groups(self.n_columns, k);
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        for (stage, n_groups) in self.stages.iter().zip(&groups) {
            pass.set_pipeline(&stage.pipeline.compute);
            pass.set_bind_group(0, &stage.bind_group, &[]);
            pass.dispatch_workgroups(*n_groups, 1, n_rows as u32);
        }
        drop(pass);
        let last = &self.buffers[(groups.len() - 1) % 2];
        encoder.copy_buffer_to_buffer(last, 0, &self.staging, 0, (n_rows * k) as u64 * ENTRY_BYTES);
    }

    /// Waits for the submitted selection and reads its result.
    pub fn fetch(&mut self, gpu: &Device, k: usize, n_rows: usize) -> Result<(), KernelError> {
        self.selected.clear();
        let Self { staging, selected, .. } = self;
        if n_rows == 0 {
            return Ok(());
        }
        gpu.mapped(staging, (n_rows * k) as u64 * ENTRY_BYTES, &mut |bytes| {
            let word = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
            let entries = bytes.as_chunks::<4>().0.chunks_exact(2);
            selected.extend(entries.map(|entry| [word(&entry[0]), word(&entry[1])]));
        })
    }

    /// Replaces the result by NaN, as a broken kernel might.
    pub fn spoil(&mut self) {
        self.selected.iter_mut().for_each(|[rank, _]| *rank = NAN_RANK);
    }

    /// Whether the result contains NaN.
    pub fn has_nan(&self) -> bool {
        self.selected.iter().any(|[rank, _]| *rank == NAN_RANK)
    }

    /// Appends the result: min(k, columns) entries per row.
    pub fn read(&self, k: usize, out: &mut Vec<TopKEntry>) {
        for row in self.selected.chunks_exact(k) {
            let row = &row[..k.min(self.n_columns)];
            out.extend(row.iter().map(|[rank, id]| TopKEntry { id: *id, logit: value_of_rank(*rank) }));
        }
    }
}
