//! Split-KV attention for a few rows over a long context, as in flash-decoding. Each chunk of positions has its own
//! workgroup, so that one row keeps the GPU busy; partial results are merged in order. With many rows, each covers all
//! its chunks.

use super::device::Device;
use crate::batch::Batch;
use crate::capacity::Capacity;
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, Op, PAGE_LEN, Retention};
use crate::ops::attention::CHUNK;
use crate::ops::attention::partials::{MAX_SPLIT_ROWS, max_partials, partial_bytes};

/// The partial results of chunks until they are merged, shared by all layers.
pub struct SplitKv {
    /// (rows, n_heads, chunks, head_dim + 2)
    pub partials: wgpu::Buffer,
    /// capacity in rows times chunks
    pub max_partials: u32,
}

impl SplitKv {
    pub fn new(
        gpu: &Device,
        graph: &Graph,
        device: DeviceId,
        capacity: &Capacity,
    ) -> Result<Self, KernelError> {
        let of_node = |op: &Op| match op {
            Op::Attention { attention, .. } => partial_bytes(attention.n_heads, attention.head_dim),
            _ => 0,
        };
        let nodes = graph.nodes().iter().filter(|node| node.device == device);
        let n_bytes = nodes.map(|node| of_node(&node.op)).max().unwrap_or(0);
        // no page table is longer than the number of pages
        let max_partials = max_partials(n_bytes, capacity.all_pages(Retention::All) * PAGE_LEN);
        let partials = gpu.storage("partial results of attention", (max_partials * n_bytes) as u64)?;
        Ok(Self { partials, max_partials: max_partials as u32 })
    }
}

/// Number of chunks of a batch's longest context.
pub fn n_chunks(batch: &Batch) -> u32 {
    batch.positions.iter().max().map_or(0, |last| last / CHUNK as u32 + 1)
}

/// Decides which batches use split-KV attention.
#[derive(Clone, Copy)]
pub struct SplitRule {
    /// smallest number of chunks of a context
    pub min_chunks: u32,
    /// limit on rows times chunks
    pub max_partials: u32,
}

impl SplitRule {
    /// The number of chunks to split a batch into. None: it is not split.
    pub fn chunks(self, batch: &Batch) -> Option<u32> {
        let n_rows = batch.n_rows();
        let n = n_chunks(batch);
        let fits = n.saturating_mul(n_rows as u32) <= self.max_partials;
        (n_rows <= MAX_SPLIT_ROWS && n >= self.min_chunks && fits).then_some(n)
    }
}
