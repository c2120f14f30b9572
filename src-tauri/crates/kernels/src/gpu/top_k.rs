//! Only the likeliest columns of the output come back, instead of all: selected on the card, stage after stage.

use super::buffers::Span;
use super::device::Device;
use super::nodes::plain;
use super::program::{Bound, Dispatch, Extent, Maker};
use super::shader;
use crate::error::KernelError;
use crate::graph::{Rows, ValueId};
use crate::ops::likeliest::{Likely, NAN_RANK, number};
use crate::plan::Capacity;

/// Columns that are selected at most: all that usual settings need. More come back as whole rows.
const MOST: usize = 128;
/// Rows that they are selected of at most.
const MOST_ROWS: usize = 64;
/// Entries that a workgroup selects from: as in the WGSL.
const SEGMENT: usize = 1024;
/// Enough for eight million columns.
const MOST_STAGES: usize = 6;
const ENTRY_BYTES: u64 = 8;

/// How a card selects from its output.
pub struct Likeliest {
    stages: Vec<Dispatch>,
    /// what the stages leave, by turns: (rows, entries, rank and column)
    buffers: [wgpu::Buffer; 2],
    readable: wgpu::Buffer,
    n_columns: usize,
    most_rows: usize,
    /// of the last run: ranks and columns
    found: Vec<[u32; 2]>,
}

/// Workgroups of each stage, of one row.
fn groups(n_columns: usize, k: usize) -> Vec<u32> {
    let (mut n, mut groups) = (n_columns, Vec::new());
    while groups.last() != Some(&1) {
        let n_groups = n.div_ceil(SEGMENT).max(1);
        groups.push(n_groups as u32);
        n = n_groups * k;
    }
    groups
}

impl Likeliest {
    /// For the graph's output, which is on this card.
    pub fn new(maker: &mut Maker, output: ValueId, capacity: &Capacity) -> Result<Self, KernelError> {
        let gpu = maker.gpu.clone();
        let n_columns = maker.graph.value(output).width;
        let most_rows = capacity.max_outputs.min(MOST_ROWS);
        let n_bytes = |n_entries: usize| (most_rows * n_entries) as u64 * ENTRY_BYTES;
        let first = n_columns.div_ceil(SEGMENT) * MOST;
        let buffers = [
            gpu.storage("candidates", n_bytes(first))?,
            gpu.storage("candidates", n_bytes(first.div_ceil(SEGMENT) * MOST))?,
        ];
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let readable = gpu.buffer("candidates", n_bytes(MOST), usage)?;
        let node = maker.graph.nodes().iter().position(|node| node.output == Some(output));
        let node = node.expect("some node makes the output");
        let n_before = maker.made.len();
        for stage in 0..MOST_STAGES {
            let from = match stage {
                0 => Bound::Value(output),
                _ => Bound::Buffer(Span::whole(&buffers[(stage - 1) % 2])),
            };
            let to = Bound::Buffer(Span::whole(&buffers[stage % 2]));
            let bound = [from, to];
            let params = [n_columns as u32, stage as u32];
            let extent = Extent::groups(1, Rows::Outputs);
            maker.add(node, (&shader::LIKELIEST, plain()), &params, &bound, extent)?;
        }
        let stages = maker.made.split_off(n_before);
        Ok(Self { stages, buffers, readable, n_columns, most_rows, found: Vec::new() })
    }

    /// Whether `k` of each of so many rows can be selected here.
    pub fn can(&self, k: usize, n_rows: usize) -> bool {
        k <= MOST && n_rows <= self.most_rows && groups(self.n_columns, k).len() <= MOST_STAGES
    }

    /// Kernels that selecting takes.
    pub fn n_stages(&self, k: usize) -> usize {
        groups(self.n_columns, k).len()
    }

    /// Adds what selects `k` of each row, as the inputs say, and brings them to where they are read.
    pub fn encode(&self, encoder: &mut wgpu::CommandEncoder, k: usize, n_rows: usize) {
        let groups = groups(self.n_columns, k);
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        for (stage, n_groups) in self.stages.iter().zip(&groups) {
            pass.set_pipeline(&stage.pipeline.compute);
            pass.set_bind_group(0, &stage.bound, &[]);
            pass.dispatch_workgroups(*n_groups, 1, n_rows as u32);
        }
        drop(pass);
        let last = &self.buffers[(groups.len() - 1) % 2];
        encoder.copy_buffer_to_buffer(last, 0, &self.readable, 0, (n_rows * k) as u64 * ENTRY_BYTES);
    }

    /// Waits for what was encoded and submitted.
    pub fn fetch(&mut self, gpu: &Device, k: usize, n_rows: usize) -> Result<(), KernelError> {
        self.found.clear();
        let Self { readable, found, .. } = self;
        if n_rows == 0 {
            return Ok(());
        }
        gpu.mapped(readable, (n_rows * k) as u64 * ENTRY_BYTES, &mut |bytes| {
            let word = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
            let entries = bytes.as_chunks::<4>().0.chunks_exact(2);
            found.extend(entries.map(|entry| [word(&entry[0]), word(&entry[1])]));
        })
    }

    /// As a broken kernel may leave them.
    pub fn spoil(&mut self) {
        self.found.iter_mut().for_each(|[rank, _]| *rank = NAN_RANK);
    }

    pub fn has_nan(&self) -> bool {
        self.found.iter().any(|[rank, _]| *rank == NAN_RANK)
    }

    /// What was fetched: of each row as many as it has columns, at most `k`.
    pub fn read(&self, k: usize, out: &mut Vec<Likely>) {
        for row in self.found.chunks_exact(k) {
            let row = &row[..k.min(self.n_columns)];
            out.extend(row.iter().map(|[rank, id]| Likely { id: *id, logit: number(*rank) }));
        }
    }
}
