//! The paged store of keys and values on a CPU: page after page, in each page layer after layer, in each layer the
//! key blocks of its heads and then the value blocks. A page of a layer is one stretch of bytes.

use std::ops::Range;

use super::arena::AlignedVec;
use super::tile::Parts;
use crate::error::KernelError;
use crate::graph::{DeviceId, Graph, KvLayerLayout, PAGE_LEN};
use crate::ops::kv_write::{Halves, row_bytes, store_key, store_value};

/// Keys and values of the layers of one device.
pub struct KvStore {
    bytes: AlignedVec<u8>,
    page_bytes: usize,
    /// None: a layer of another device
    layers: Vec<Option<LayerSpan>>,
}

#[derive(Clone, Copy)]
struct LayerSpan {
    offset: usize,
    /// bytes of the keys, or of the values, of one head in one page
    block_bytes: usize,
    layout: KvLayerLayout,
}

impl KvStore {
    /// Room for `n_pages` pages of the layers that live on `device`.
    pub fn new(graph: &Graph, device: DeviceId, n_pages: usize) -> Result<Self, KernelError> {
        let mut page_bytes = 0;
        let mut layers = Vec::with_capacity(graph.kv().layers.len());
        for (layout, at) in graph.kv().layers.iter().zip(graph.kv_devices()) {
            if *at != device {
                layers.push(None);
                continue;
            }
            let block_bytes = PAGE_LEN * row_bytes(layout.dtype, layout.head_dim);
            layers.push(Some(LayerSpan { offset: page_bytes, block_bytes, layout: *layout }));
            page_bytes += 2 * layout.n_kv_heads * block_bytes;
        }
        let bytes = AlignedVec::zeroed(page_bytes.saturating_mul(n_pages), "the context (KV cache)")?;
        Ok(Self { bytes, page_bytes, layers })
    }

    pub fn layout(&self, layer: usize) -> KvLayerLayout {
        self.span(layer).layout
    }

    /// Keys of one head in one page.
    pub fn keys(&self, layer: usize, page: u32, head: usize) -> &[u8] {
        &self.bytes[self.block(layer, page, head)]
    }

    /// Values of one head in one page.
    pub fn values(&self, layer: usize, page: u32, head: usize) -> &[u8] {
        let n_heads = self.span(layer).layout.n_kv_heads;
        &self.bytes[self.block(layer, page, n_heads + head)]
    }

    /// All of one layer in one page.
    pub fn page(&self, layer: usize, page: u32) -> &[u8] {
        &self.bytes[self.page_range(layer, page)]
    }

    pub fn page_mut(&mut self, layer: usize, page: u32) -> &mut [u8] {
        let range = self.page_range(layer, page);
        &mut self.bytes[range]
    }

    /// All layers of one page into another.
    pub fn copy_page(&mut self, from: u32, to: u32) {
        let start = from as usize * self.page_bytes;
        self.bytes.copy_within(start..start + self.page_bytes, to as usize * self.page_bytes);
    }

    /// Key and value (head_dim) of one head at one slot of one page.
    #[allow(clippy::too_many_arguments)] // an address in the store and what to put there
    pub fn write(
        &mut self,
        halves: Halves,
        layer: usize,
        page: u32,
        slot: usize,
        head: usize,
        k: &[f32],
        v: &[f32],
    ) {
        // SAFETY: the store is borrowed exclusively: no other thread writes.
        unsafe { self.writer(layer).write(halves, page, slot, head, k, v) }
    }

    /// A writer that several workers use, each for KV heads of its own.
    pub fn writer(&mut self, layer: usize) -> KvWriter<'_> {
        let span = self.span(layer);
        KvWriter { bytes: Parts::new(&mut self.bytes), page_bytes: self.page_bytes, span }
    }

    fn span(&self, layer: usize) -> LayerSpan {
        self.layers[layer].expect("the graph uses a KV layer only on the device that writes it")
    }

    fn block(&self, layer: usize, page: u32, block: usize) -> Range<usize> {
        block_range(self.span(layer), self.page_bytes, page, block)
    }

    fn page_range(&self, layer: usize, page: u32) -> Range<usize> {
        let span = self.span(layer);
        let start = page as usize * self.page_bytes + span.offset;
        start..start + 2 * span.layout.n_kv_heads * span.block_bytes
    }
}

fn block_range(span: LayerSpan, page_bytes: usize, page: u32, block: usize) -> Range<usize> {
    let start = page as usize * page_bytes + span.offset + block * span.block_bytes;
    start..start + span.block_bytes
}

/// Writes one layer.
pub struct KvWriter<'a> {
    bytes: Parts<'a, u8>,
    page_bytes: usize,
    span: LayerSpan,
}

impl KvWriter<'_> {
    /// Key and value (head_dim) of one head at one slot of one page.
    ///
    /// # Safety
    /// No other thread writes the same `head` at the same time.
    pub unsafe fn write(&self, halves: Halves, page: u32, slot: usize, head: usize, k: &[f32], v: &[f32]) {
        let KvLayerLayout { n_kv_heads, dtype, .. } = self.span.layout;
        assert!(head < n_kv_heads && slot < PAGE_LEN);
        // SAFETY: blocks of different heads do not overlap, and this head is this thread's alone.
        let keys = unsafe { self.bytes.part(block_range(self.span, self.page_bytes, page, head)) };
        store_key(halves, dtype, k, slot, keys);
        // SAFETY: as above.
        let values =
            unsafe { self.bytes.part(block_range(self.span, self.page_bytes, page, n_kv_heads + head)) };
        store_value(halves, dtype, v, slot, values);
    }
}
