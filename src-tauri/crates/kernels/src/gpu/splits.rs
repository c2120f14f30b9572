//! Attention of a few rows over a long context: each chunk of positions has a workgroup of its own, so that one row
//! keeps a whole card busy, and what they leave is merged in order. Many rows go through all chunks by themselves.

use super::device::Device;
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, Op, PAGE_LEN, Retention};
use crate::ops::attention::CHUNK;
use crate::plan::{Batch, Capacity};

/// What chunks leave until they are merged; layer after layer uses it.
pub struct Splits {
    /// (rows, n_heads, chunks, head_dim + 2)
    pub parts: wgpu::Buffer,
    /// rows times chunks that fit into it
    pub limit: u32,
}

/// Rows that keep a card busy by themselves.
const MOST_ROWS: usize = 8;

/// Beyond one row of the longest context, no more than this is taken.
const MOST_BYTES: usize = 32 << 20;

impl Splits {
    pub fn new(
        gpu: &Device,
        graph: &Graph,
        device: DeviceId,
        capacity: &Capacity,
    ) -> Result<Self, KernelError> {
        let of_node = |op: &Op| match op {
            Op::Attention { attention, .. } => attention.n_heads * (attention.head_dim + 2),
            _ => 0,
        };
        let nodes = graph.nodes().iter().filter(|node| node.device == device);
        let n_bytes = nodes.map(|node| of_node(&node.op)).max().unwrap_or(0) * size_of::<f32>();
        // no table is longer than there are pages
        let most_chunks = (capacity.all_pages(Retention::All) * PAGE_LEN).div_ceil(CHUNK);
        let fits = MOST_BYTES.checked_div(n_bytes).unwrap_or(0);
        let limit = (MOST_ROWS * most_chunks).min(fits.max(most_chunks));
        let parts = gpu.storage("parts of attention", (limit * n_bytes) as u64)?;
        Ok(Self { parts, limit: limit as u32 })
    }
}

/// Chunks of the longest context of a batch.
pub fn n_chunks(batch: &Batch) -> u32 {
    batch.positions.iter().max().map_or(0, |last| last / CHUNK as u32 + 1)
}

/// How many chunks have workgroups of their own. None: rows go through all of theirs.
pub fn split(batch: &Batch, limit: u32) -> Option<u32> {
    let n_rows = batch.n_rows();
    let n = n_chunks(batch);
    (n_rows <= MOST_ROWS && n > 1 && n.saturating_mul(n_rows as u32) <= limit).then_some(n)
}
