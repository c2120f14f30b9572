//! Attention of a few rows over a long context: each chunk of positions has a workgroup of its own, so that one row
//! keeps a whole card busy, and what they leave is merged in order. Many rows go through all chunks by themselves.

use super::device::Device;
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, Op, PAGE_LEN, Retention};
use crate::ops::attention::CHUNK;
use crate::ops::attention::parts::{MOST_ROWS, most_parts, part_bytes};
use crate::plan::{Batch, Capacity};

/// What chunks leave until they are merged; layer after layer uses it.
pub struct Splits {
    /// (rows, n_heads, chunks, head_dim + 2)
    pub parts: wgpu::Buffer,
    /// rows times chunks that fit into it
    pub limit: u32,
}

impl Splits {
    pub fn new(
        gpu: &Device,
        graph: &Graph,
        device: DeviceId,
        capacity: &Capacity,
    ) -> Result<Self, KernelError> {
        let of_node = |op: &Op| match op {
            Op::Attention { attention, .. } => part_bytes(attention.n_heads, attention.head_dim),
            _ => 0,
        };
        let nodes = graph.nodes().iter().filter(|node| node.device == device);
        let n_bytes = nodes.map(|node| of_node(&node.op)).max().unwrap_or(0);
        // no table is longer than there are pages
        let limit = most_parts(n_bytes, capacity.all_pages(Retention::All) * PAGE_LEN);
        let parts = gpu.storage("parts of attention", (limit * n_bytes) as u64)?;
        Ok(Self { parts, limit: limit as u32 })
    }
}

/// Chunks of the longest context of a batch.
pub fn n_chunks(batch: &Batch) -> u32 {
    batch.positions.iter().max().map_or(0, |last| last / CHUNK as u32 + 1)
}

/// Where chunks have workgroups of their own.
#[derive(Clone, Copy)]
pub struct Split {
    /// chunks of a context from which on
    pub from: u32,
    /// rows times chunks that fit
    pub limit: u32,
}

impl Split {
    /// How many of a batch. None: rows go through all of theirs.
    pub fn chunks(self, batch: &Batch) -> Option<u32> {
        let n_rows = batch.n_rows();
        let n = n_chunks(batch);
        let fits = n.saturating_mul(n_rows as u32) <= self.limit;
        (n_rows <= MOST_ROWS && n >= self.from && fits).then_some(n)
    }
}
